#include "framework/passes/drop_gradient_marks.h"

#include "framework/ops/op_names.h"

namespace zg {

StatusOr<bool> DropGradientMarks::Run(ir::Graph& graph) const {
  bool changed = false;
  for (const char* const mark : {op_names::kCustomGradient, op_names::kStopGradient}) {
    for (ir::Node* const node : graph.NodesOf(mark)) {
      graph.ReplaceAllUses(node->outputs[0], node->inputs[0]);
      graph.Erase(node);
      changed = true;
    }
  }
  return changed;
}

}  // namespace zg
