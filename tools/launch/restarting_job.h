// A job that is started again from its last checkpoint when it fails.
#pragma once

#include "framework/base/status.h"
#include "framework/job/launcher.h"
#include "tools/launch/launch_options.h"

namespace zg::launch {

// Runs the job until RestartPolicy says that it is over, with a second's pause before each restart.
// A restart resumes what this job has saved; before its first checkpoint it begins as the job did.
// Says on standard error which rank failed, how, where and with which last lines, and at the end
// what the attempts came to. Returns the exit code of the last one.
StatusOr<int> RunWithRestarts(const Options& options, const Supervisor& supervisor);

}  // namespace zg::launch
