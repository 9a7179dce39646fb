// tune: finds the ranks, threads and overlap that train a program fastest on this machine.
//
//   bazel run -c opt //tools/tune -- bazel-bin/models/gpt/gpt --preset mini --zero 2
//   bazel run -c opt //tools/tune -- --seconds 300 -- bazel-bin/models/gpt/gpt --preset mini --zero 2
//
// Exit codes: 0; 2 when the command line is wrong; 1 for every other error.
#include <fmt/core.h>

#include <string>

#include "framework/base/stopwatch.h"
#include "framework/job/console.h"
#include "framework/job/launcher.h"
#include "tools/command/tool.h"
#include "tools/tune/outcome_text.h"
#include "tools/tune/search.h"
#include "tools/tune/trial.h"
#include "tools/tune/tune_options.h"

namespace zg::tune {
namespace {

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
  if (!outcome.ok()) return command::Fail("tune", outcome.status());
  print_out(OutcomeText(*outcome, options, stopwatch.ms() / 1e3));
  return 0;
}

StatusOr<int> ParseAndTune(int argc, char** argv) {
  std::string help;
  ZG_ASSIGN_OR_RETURN(const Options options, ParseCommandLine(argc, argv, &help));
  if (!help.empty()) {
    print_out(help);
    return 0;
  }
  return RunSupervised(
      "", [&](const Supervisor& supervisor) -> StatusOr<int> { return Tune(options, supervisor); });
}

}  // namespace
}  // namespace zg::tune

int main(int argc, char** argv) {
  return zg::command::RunTool("tune", [&] { return zg::tune::ParseAndTune(argc, argv); });
}
