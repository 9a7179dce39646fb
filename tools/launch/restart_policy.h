// RestartPolicy: the decision after each attempt at a job. An attempt that succeeded, was stopped
// by a signal, or was refused for its command line is the last one. Any other is followed by a
// restart while restarts are left. If a restart fails before the job has saved anything new, it
// probably lacks something that it needs, such as a host, so the next one has fewer ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace zg::launch {

struct RestartLimits {
  int max_restarts = 3;
  int min_ranks = 1;
  // In a step, over all ranks; the number of ranks must divide it.
  int64_t micro_batches = 1;
};

struct AttemptEnd {
  int code = 0;
  bool was_stopped = false;
  bool has_saved = false;  // a new checkpoint
};

class RestartPolicy {
 public:
  RestartPolicy(int num_ranks, const RestartLimits& limits)
      : num_ranks_(num_ranks), limits_(limits) {}

  // The number of ranks of the next attempt, or nothing if there is none; why() explains.
  std::optional<int> Next(const AttemptEnd& end);

  // The reason of the last answer: "finished", "3 restarts are used up".
  const std::string& why() const { return why_; }
  int num_restarts() const { return num_restarts_; }

 private:
  int FewerRanks() const;

  int num_ranks_;
  const RestartLimits limits_;
  int num_restarts_ = 0;
  std::string why_;
};

}  // namespace zg::launch
