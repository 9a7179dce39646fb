// tune: finds the ranks, threads and overlap with which a program trains fastest on this machine.
//
//   bazel run -c opt //tools/tune -- bazel-bin/models/gpt/gpt --preset mini --zero 2
//   bazel run -c opt //tools/tune -- --seconds 300 -- bazel-bin/models/gpt/gpt --preset mini --zero 2
//
// Exit codes: 0; 2 when the command line is wrong; 1 for every other error.
#include <fmt/core.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "framework/base/stopwatch.h"
#include "framework/job/console.h"
#include "framework/job/launcher.h"
#include "tools/tune/outcome_text.h"
#include "tools/tune/search.h"
#include "tools/tune/trial.h"
#include "tools/tune/tune_options.h"

namespace zg::tune {
namespace {

int Fail(const Status& status) {
  const bool is_users = status.code() == StatusCode::kInvalidArgument;
  print_error(fmt::format("error: {}\n{}", status.message(),
                          is_users ? "hint: tune --help lists all flags\n" : ""));
  return is_users ? 2 : 1;
}

int Tune(const Options& options, const Supervisor& supervisor) {
  const Stopwatch stopwatch;
  const std::string report = supervisor.directory + "/report.json";
  Machinery machinery;
  machinery.run = [&](const Candidate& candidate, int64_t steps, double seconds) {
    return RunTrial(TrialCommandOf(candidate, options, steps, report), report, seconds, supervisor);
  };
  machinery.seconds_passed = [&] { return stopwatch.ms() / 1e3; };
  machinery.say = [&](const std::string& text) {
    print_error(fmt::format("tune: {:>3.0f} s: {}\n", stopwatch.ms() / 1e3, text));
  };
  const StatusOr<Outcome> outcome = Search(options, machinery);
  if (!outcome.ok()) return Fail(outcome.status());
  print_out(OutcomeText(*outcome, options, stopwatch.ms() / 1e3));
  return 0;
}

int Main(int argc, char** argv) {
  // `bazel run` starts this elsewhere than where the user is.
  if (const char* directory = std::getenv("BUILD_WORKING_DIRECTORY")) {
    if (chdir(directory) != 0) return Fail(FailedPrecondition("{} cannot be entered", directory));
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::string help;
  const StatusOr<Options> options = ParseCommandLine(argc, argv, &help);
  if (!options.ok()) return Fail(options.status());
  if (!help.empty()) {
    print_out(help);
    return 0;
  }
  const StatusOr<int> code = RunSupervised("", [&](const Supervisor& supervisor) -> StatusOr<int> {
    return Tune(*options, supervisor);
  });
  return code.ok() ? *code : Fail(code.status());
}

}  // namespace
}  // namespace zg::tune

int main(int argc, char** argv) { return zg::tune::Main(argc, argv); }
