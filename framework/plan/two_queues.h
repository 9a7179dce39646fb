// LayOnTwoQueues: when the transfers of a step run. Its nodes are laid on two queues, computation and
// transfers, which meet where the one waits for the other.
#pragma once

#include <unordered_map>

#include "framework/ir/graph.h"
#include "framework/plan/time_estimate.h"

namespace zg::plan {

// Of one node in a step, all micro-batches together.
struct TransferTime {
  double ms = 0;
  double waited_ms = 0;  // of these, while nothing is computed
  double hidden_ms() const { return ms - waited_ms; }
};

// The transfers of a step that others precede and follow, by their nodes.
std::unordered_map<const ir::Node*, TransferTime> LayOnTwoQueues(const ir::Graph& graph,
                                                                 const Machine& machine);

}  // namespace zg::plan
