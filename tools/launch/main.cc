// launch: runs a program under mpirun, and again from its last checkpoint when it fails.
//
//   launch --ranks 4 --min-ranks 2 -- bazel-bin/models/gpt/gpt --save runs/gpt --save-every 100
//
// Exit codes: those of the program's last run; 2 when the command line is wrong.
#include <fmt/core.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "framework/job/console.h"
#include "framework/job/launcher.h"
#include "tools/launch/launch_options.h"
#include "tools/launch/restarting_job.h"

namespace zg::launch {
namespace {

int Fail(const Status& status) {
  const bool is_users = status.code() == StatusCode::kInvalidArgument;
  print_error(fmt::format("error: {}\n{}", status.message(),
                          is_users ? "hint: launch --help lists all flags\n" : ""));
  return is_users ? 2 : 1;
}

int Main(int argc, char** argv) {
  // `bazel run` starts this elsewhere than where the user is.
  if (const char* directory = std::getenv("BUILD_WORKING_DIRECTORY")) {
    if (chdir(directory) != 0) return Fail(FailedPrecondition("{} cannot be entered", directory));
  }
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe under the output is no reason to end the job
  std::string help;
  const StatusOr<Options> options = ParseCommandLine(argc, argv, &help);
  if (!options.ok()) return Fail(options.status());
  if (!help.empty()) {
    print_out(help);
    return 0;
  }
  if (const StatusOr<std::string> mpirun = FindMpirun(); !mpirun.ok()) return Fail(mpirun.status());
  const StatusOr<int> code = RunSupervised(
      "", [&](const Supervisor& supervisor) { return RunWithRestarts(*options, supervisor); });
  return code.ok() ? *code : Fail(code.status());
}

}  // namespace
}  // namespace zg::launch

int main(int argc, char** argv) { return zg::launch::Main(argc, argv); }
