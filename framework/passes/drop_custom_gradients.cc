#include "framework/passes/drop_custom_gradients.h"

#include "framework/ops/op_names.h"

namespace zg {

StatusOr<bool> DropCustomGradients::Run(ir::Graph& graph) const {
  const std::vector<ir::Node*> nodes = graph.NodesOf(op_names::kCustomGradient);
  for (ir::Node* node : nodes) {
    graph.ReplaceAllUses(node->outputs[0], node->inputs[0]);
    graph.Erase(node);
  }
  return !nodes.empty();
}

}  // namespace zg
