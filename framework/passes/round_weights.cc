#include "framework/passes/round_weights.h"

#include <vector>

#include "framework/passes/sixteen_bit_casts.h"
#include "framework/passes/updated_variables.h"

namespace zg {
namespace {

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
