// Logging of a job: spdlog to standard error, from rank 0 at info, from the other ranks warnings
// and errors alone, with the rank in front.
#pragma once

namespace zg {

// Sets spdlog's default logger. A log that cannot be written any more gives one warning at most.
void StartLogging(int rank, int num_ranks);

}  // namespace zg
