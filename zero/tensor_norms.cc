#include "zero/tensor_norms.h"

#include "framework/ir/builder.h"
#include "framework/ops/op_names.h"
#include "zero/update_nodes.h"

namespace zg::zero {
namespace {

Status Measure(ir::Graph& graph, ir::Node* update) {
  ZG_RETURN_IF_ERROR(SumGradientOnce(graph, update));
  ZG_ASSIGN_OR_RETURN(ir::Value * begins, PartBegins(graph, update));
  ir::Builder builder(&graph, update->section);
  builder.InsertBefore(update);
  builder.set_scope(update->scope);
  std::vector<ir::Value*> inputs = update->inputs;
  inputs.push_back(begins);
  ir::Value* sums = builder.Op(op_names::kTensorSquareSums, inputs, update->attributes,
                               inputs[0]->name + ".square_sums");
  ZG_RETURN_IF_ERROR(builder.status());
  inputs.back() = sums;
  inputs.push_back(begins);
  return ReplaceUpdate(graph, update, inputs);
}

}  // namespace

StatusOr<bool> TensorNorms::Run(ir::Graph& graph) const {
  ZG_ASSIGN_OR_RETURN(const std::vector<ir::Node*> updates, UnboxedUpdateNodes(graph, name()));
  bool changed = false;
  for (ir::Node* update : updates) {
    if (update->op->name != op_names::kNormedUpdate) continue;
    if (update->inputs.back()->type.dtype == DType::kI64) continue;
    ZG_RETURN_IF_ERROR(Measure(graph, update));
    changed = true;
  }
  return changed;
}

}  // namespace zg::zero
