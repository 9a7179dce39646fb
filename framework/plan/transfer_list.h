// ListTransfers: what one rank sends in a step, how much of it is hidden behind the computation,
// and why the rest is not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/plan/two_queues.h"

namespace zg::plan {

// A collective of training; everything per step.
struct PlannedTransfer {
  std::string section;  // "forward", "backward" or "update"
  std::string op;
  std::string value;  // its output
  int64_t calls = 0;
  int64_t bytes = 0;
  double ms = 0;
  double hidden_ms = 0;
  // What running ahead costs: its input and result, where they are not in variables, from its start
  // to its wait, without the scratch memory of its kernel. 0: it runs in its place.
  int64_t held_bytes = 0;
  std::string reason;  // why it is not hidden, or not all of it; "" if it is
};

// In the order of the nodes, without nodes that send nothing. `overlap_bytes` is the limit that the
// graph was compiled with (CompileOptions).
std::vector<PlannedTransfer> ListTransfers(const ir::Graph& graph, const StepOnQueues& step,
                                           int64_t overlap_bytes);

// Merges transfers with the same section, op and reason, in the order of their first occurrence.
// `value` is empty, and `held_bytes` the most of any.
std::vector<PlannedTransfer> GroupTransfers(const std::vector<PlannedTransfer>& transfers);

}  // namespace zg::plan
