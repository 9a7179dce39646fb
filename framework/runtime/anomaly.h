// NodeAnomalies: the check around every node that detect_anomaly asks for: the first infinity or
// NaN that a node computes is an error which says where, and whether the node was fed with one.
//
// With a loss scaler (f16) overflow in backward is expected: then only forward, eval and the update
// nodes are checked.
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/graph.h"
#include "framework/kernels/kernel.h"

namespace zg {

class NodeAnomalies {
 public:
  // Before the node runs, with the addresses of its inputs on this rank.
  NodeAnomalies(const ir::Graph& graph, const ir::Node& node,
                const std::vector<const void*>& inputs);

  // After it has run. The error names value, element, section, micro-batch and rank.
  Status CheckOutputs(const std::vector<void*>& outputs, const StepContext& context,
                      int rank) const;

 private:
  const ir::Graph& graph_;
  const ir::Node& node_;
  bool is_checked_;
  std::string inputs_;  // what is to say about them
};

}  // namespace zg
