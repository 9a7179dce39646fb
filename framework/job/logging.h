// Logging of a job: spdlog to standard error. Rank 0 logs from the level of --log-level on, the
// other ranks no more than warnings and errors, with the rank in front.
#pragma once

#include <string>
#include <vector>

namespace zg {

// What --log-level accepts.
const std::vector<std::string>& LogLevels();

// Sets spdlog's default logger. A log that cannot be written any more gives one warning at most.
void StartLogging(int rank, int num_ranks, const std::string& level);

}  // namespace zg
