// A job that is restarted from its last checkpoint when it fails.
#pragma once

#include "framework/base/status.h"
#include "framework/job/launcher.h"
#include "tools/launch/launch_options.h"

namespace zg::launch {

// Runs the job until RestartPolicy ends it, with a pause of a second before each restart. A restart
// resumes this job's last checkpoint; before its first checkpoint it begins as the job did. Reports
// on standard error which rank failed, how, where and with which last lines, and at the end the
// result of each attempt. Returns the exit code of the last one.
StatusOr<int> RunWithRestarts(const Options& options, const Supervisor& supervisor);

}  // namespace zg::launch
