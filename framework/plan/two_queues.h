// LayOnTwoQueues: when the nodes of a step run. Nodes are laid on two queues, computation and
// transfers, which synchronise where one waits for the other. While a transfer takes a part of the
// computation's processor (ProfiledRanks), nodes beside it take that much longer.
#pragma once

#include <unordered_map>
#include <vector>

#include "framework/ir/graph.h"
#include "framework/plan/time_estimate.h"

namespace zg::plan {

// The time of one node in a step, summed over all micro-batches.
struct TransferTime {
  double ms = 0;
  double waited_ms = 0;  // the part of it while nothing is computed
  double hidden_ms() const { return ms - waited_ms; }
};

// One run of a node, in milliseconds from the beginning of the timeline.
struct QueueSlice {
  int node = 0;  // in the order of forward, backward, update
  double begin_ms = 0;
  double end_ms = 0;
};

struct StepOnQueues {
  // Times of the transfers in a step that has a step before and after it.
  std::unordered_map<const ir::Node*, TransferTime> transfers;
  // The runs from the beginning of the last micro-batch to the end of the step, in order. Transfers
  // that are still in flight from earlier begin at 0.
  std::vector<QueueSlice> computing, sending;
  double hidden_ms = 0;  // of all transfers
  double slowed_ms = 0;  // by which transfers beside the nodes of a step lengthen them
};

StepOnQueues LayOnTwoQueues(const ir::Graph& graph, const Machine& machine);

}  // namespace zg::plan
