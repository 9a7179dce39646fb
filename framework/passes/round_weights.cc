#include "framework/passes/round_weights.h"

#include <algorithm>
#include <vector>

#include "framework/passes/sixteen_bit_casts.h"

namespace zg {
namespace {

bool IsUpdated(const ir::Value& variable) {
  return std::any_of(variable.users.begin(), variable.users.end(), [](const ir::Node* user) {
    return user->op->traits.kind == ir::OpKind::kAssign;
  });
}

void Round(ir::Graph& graph, ir::StoredTensor* tensor, const std::vector<ir::Node*>& casts) {
  ir::Value* const parameter = tensor->storage;
  const DType dtype = casts[0]->outputs[0]->type.dtype;
  tensor->type.dtype = dtype;
  parameter->type.dtype = dtype;
  parameter->producer->attributes.Set("dtype", dtype);
  for (ir::Node* cast : casts) {
    graph.ReplaceAllUses(cast->outputs[0], parameter);
    graph.Erase(cast);
  }
}

}  // namespace

StatusOr<bool> RoundWeights::Run(ir::Graph& graph) const {
  bool changed = false;
  for (ir::StoredTensor& tensor : graph.tensors()) {
    if (!ir::HasRole(*tensor.storage, Role::kParameter) || IsUpdated(*tensor.storage)) continue;
    const std::vector<ir::Node*> casts = SixteenBitCastsOf(*tensor.storage);
    if (casts.empty()) continue;
    Round(graph, &tensor, casts);
    changed = true;
  }
  return changed;
}

}  // namespace zg
