#include "framework/passes/eliminate_dead_nodes.h"

#include <algorithm>
#include <unordered_set>

namespace zg {

StatusOr<bool> EliminateDeadNodes::Run(ir::Graph& graph) const {
  std::unordered_set<const ir::Value*> holds_tensor;
  for (const ir::StoredTensor& tensor : graph.tensors()) holds_tensor.insert(tensor.storage);
  const auto is_alive = [&](const ir::Node* node) {
    return node->op->traits.has_side_effect ||
           std::any_of(node->outputs.begin(), node->outputs.end(), [&](const ir::Value* output) {
             return !output->users.empty() || holds_tensor.count(output) != 0;
           });
  };
  // Backwards, users before their inputs, so that one walk is enough.
  std::vector<ir::Node*> nodes = graph.AllNodes();
  bool changed = false;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (is_alive(*node)) continue;
    graph.Erase(*node);
    changed = true;
  }
  return changed;
}

}  // namespace zg
