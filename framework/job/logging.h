// Logging of a job: spdlog to standard error. Rank 0 logs from the level of --log-level on; the
// other ranks log only warnings and errors, prefixed with the rank.
#pragma once

#include <string>
#include <vector>

namespace zg {

// The values that --log-level accepts.
const std::vector<std::string>& LogLevels();

// Sets spdlog's default logger. A log that can no longer be written gives at most one warning.
void StartLogging(int rank, int num_ranks, const std::string& level);

}  // namespace zg
