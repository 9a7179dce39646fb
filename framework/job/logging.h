// Logging of a job: spdlog to standard error. Rank 0 logs from the level of --log-level on; the
// other ranks log only warnings and errors, prefixed with the rank. Quoted settings are shown as
// flags (flag_names.h).
#pragma once

#include <string>
#include <vector>

namespace zg {

// The values that --log-level accepts.
const std::vector<std::string>& LogLevels();

// Sets spdlog's default logger. A log that can no longer be written gives at most one warning.
void StartLogging(int rank, const std::string& level);

// Prefixes what this thread logs from now on with `rank`, one of several in this process.
void LogAsRank(int rank);

}  // namespace zg
