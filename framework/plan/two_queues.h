// LayOnTwoQueues: when the nodes of a step run. They are laid on two queues, computation and
// transfers, which meet where the one waits for the other.
#pragma once

#include <unordered_map>
#include <vector>

#include "framework/ir/graph.h"
#include "framework/plan/time_estimate.h"

namespace zg::plan {

// Of one node in a step, all micro-batches together.
struct TransferTime {
  double ms = 0;
  double waited_ms = 0;  // of these, while nothing is computed
  double hidden_ms() const { return ms - waited_ms; }
};

// One run of a node, in milliseconds from where the picture begins.
struct QueueSlice {
  int node = 0;  // in the order of forward, backward, update
  double begin_ms = 0;
  double end_ms = 0;
};

struct StepOnQueues {
  // Those that others precede and follow.
  std::unordered_map<const ir::Node*, TransferTime> transfers;
  // What runs from the beginning of the last micro-batch to the end of the step, in its order. What was
  // sent before and is still on its way begins at 0.
  std::vector<QueueSlice> computing, sending;
};

StepOnQueues LayOnTwoQueues(const ir::Graph& graph, const Machine& machine);

}  // namespace zg::plan
