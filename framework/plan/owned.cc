#include "framework/plan/owned.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace zg::plan {
namespace {

// The variable that a value is, or of which it is another placement.
const ir::Value* VariableOf(const ir::Value* value) {
  while (value->producer->op->traits.kind == ir::OpKind::kBoxing) {
    value = value->producer->inputs[0];
  }
  return value;
}

bool HasOwners(const ir::Graph& graph, const ir::Node& node, const ZeroOptions& zero) {
  const ir::OpTraits& traits = node.op->traits;
  if (traits.kind != ir::OpKind::kUpdate) return false;
  const bool is_whole = graph.LocalType(*node.outputs[0]) == node.outputs[0]->type;
  return !is_whole && (traits.keeps_tensors_whole || zero.partition != Partition::kEven);
}

// The flops of an update of this tensor alone.
int64_t UpdateFlops(const ir::Node& update, const Shape& tensor) {
  if (update.op->flops == nullptr) return 0;
  ir::OpCall call = update.Call();
  const Shape bucket = update.inputs[0]->type.shape;
  for (TensorType& input : call.inputs) {
    if (input.shape == bucket) input.shape = tensor;
  }
  for (const char* places : {"matrices", "tensors"}) {
    if (call.attributes.Has(places)) call.attributes.Set(places, std::vector<int64_t>{});
  }
  return update.op->flops(call);
}

}  // namespace

Owned SumOwned(const ir::Graph& graph, const ZeroOptions& zero) {
  Owned owned;
  double elements = 0, padded = 0, flops = 0;
  std::map<int64_t, double> flops_by_owner;
  int64_t num_owners = 1;
  for (const ir::Node* update : graph.AllNodes()) {
    if (!HasOwners(graph, *update, zero)) continue;
    const ir::Value* bucket = VariableOf(update->inputs[0]);
    const int64_t size = bucket->type.shape.num_elements();
    const int64_t part = graph.LocalType(*update->outputs[0]).shape.num_elements();
    num_owners = size / part;
    ++owned.buckets;
    padded += static_cast<double>(size);
    for (const ir::StoredTensor& tensor : graph.tensors()) {
      if (tensor.storage != bucket) continue;
      ++owned.tensors;
      elements += static_cast<double>(tensor.type.shape.num_elements());
      const auto of_update = static_cast<double>(UpdateFlops(*update, tensor.type.shape));
      flops += of_update;
      flops_by_owner[tensor.offset_elements / part] += of_update;
    }
  }
  double most = 0;
  for (const auto& [owner, sum] : flops_by_owner) most = std::max(most, sum);
  if (elements > 0) owned.bytes_imbalance = padded / elements;
  if (flops > 0) owned.flops_imbalance = most * static_cast<double>(num_owners) / flops;
  return owned;
}

}  // namespace zg::plan
