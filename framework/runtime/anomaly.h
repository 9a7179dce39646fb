// NodeAnomalies: the check around every node for detect_anomaly. The first infinity or NaN that a
// node computes is an error that says where it is and whether the node's inputs already had one.
//
// An infinity is no anomaly of a node that is asked for one, such as a mask's fill of -INFINITY, nor of
// forward, backward and eval nodes that get one from such a node.
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
  // Construct before the node runs, with the addresses of its inputs on this rank.
  NodeAnomalies(const ir::Graph& graph, const ir::Node& node,
                const std::vector<const void*>& inputs);

  // Call after it has run. The error names value, element, section, micro-batch and rank.
  Status CheckOutputs(const std::vector<void*>& outputs, const StepContext& context,
                      int rank) const;

 private:
  const ir::Graph& graph_;
  const ir::Node& node_;
  bool is_checked_;
  bool may_be_infinite_;
  std::string inputs_;  // the description of the inputs for the error
};

}  // namespace zg
