// launch: runs a program under mpirun, and restarts it from its last checkpoint when it fails.
//
//   launch --ranks 4 --min-ranks 2 -- bazel-bin/models/gpt/gpt --save runs/gpt --save-every 100
//
// Exit codes: those of the program's last run; 2 if the command line is wrong.
#include <string>

#include "framework/job/console.h"
#include "framework/job/launcher.h"
#include "tools/command/tool.h"
#include "tools/launch/launch_options.h"
#include "tools/launch/restarting_job.h"

namespace zg::launch {
namespace {

StatusOr<int> Launch(int argc, char** argv) {
  std::string help;
  ZG_ASSIGN_OR_RETURN(const Options options, ParseCommandLine(argc, argv, &help));
  if (!help.empty()) {
    print_out(help);
    return 0;
  }
  ZG_RETURN_IF_ERROR(FindMpirun().status());
  return RunSupervised(
      "", [&](const Supervisor& supervisor) { return RunWithRestarts(options, supervisor); });
}

}  // namespace
}  // namespace zg::launch

int main(int argc, char** argv) {
  return zg::command::RunTool("launch", [&] { return zg::launch::Launch(argc, argv); });
}
