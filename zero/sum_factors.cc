#include "zero/sum_factors.h"

#include <algorithm>

#include "framework/ir/builder.h"
#include "framework/ops/factored_shapes.h"
#include "framework/ops/op_names.h"
#include "zero/update_nodes.h"

namespace zg::zero {
namespace {

// The attributes of tensor_square_sums of the parameter and its gradient.
ir::Attributes NormAttributes(const ir::Node& update) {
  const ir::Attributes& from = update.attributes;
  std::vector<int64_t> tensors;
  for (const FactoredTensor& tensor : FactoredTensorsOf(update.Call()).tensors) {
    tensors.insert(tensors.end(), {tensor.begin, tensor.part_size()});
  }
  return {{"lr", from.Float("lr")},
          {"weight_decay", from.Float("weight_decay")},
          {"program", std::string("t0=scale(i0,factor=1.0);t1=scale(i1,factor=1.0)")},
          {"results", std::vector<int64_t>{0}},
          {"norms", std::vector<int64_t>{0, 1}},
          {"tensors", tensors}};
}

// Appends the sums of one update before it.
class Measurer {
 public:
  Measurer(ir::Graph* graph, ir::Node* update)
      : graph_(*graph), update_(update), builder_(graph, update->section) {
    builder_.InsertBefore(update);
    builder_.set_scope(update->scope);
  }

  Status Run() {
    ZG_RETURN_IF_ERROR(SumGradientOnce(graph_, update_));
    ZG_ASSIGN_OR_RETURN(ir::Value * begins, PartBegins(graph_, update_));
    const std::vector<ir::Value*>& inputs = update_->inputs;
    const std::vector<ir::Value*> control(inputs.begin() + 4, inputs.end());
    const ir::Attributes& attributes = update_->attributes;
    ir::Value* norms = Sum(op_names::kTensorSquareSums, {inputs[0], inputs[1]}, control, {begins},
                           NormAttributes(*update_), "norms");
    ir::Value* sums = Sum(op_names::kFactorSums, {inputs[1]}, control, {norms, begins}, attributes,
                          op_names::kFactorSums);
    ir::Value* steps = Sum(op_names::kFactoredStepSums, {inputs[1], inputs[2], inputs[3]}, control,
                           {norms, sums, begins}, attributes, "step_sums");
    ZG_RETURN_IF_ERROR(builder_.status());
    std::vector<ir::Value*> all = inputs;
    all.insert(all.end(), {norms, sums, steps, begins});
    return ReplaceUpdate(graph_, update_, all);
  }

 private:
  // The sums over all ranks.
  ir::Value* Sum(const char* op, std::vector<ir::Value*> inputs,
                 const std::vector<ir::Value*>& control, const std::vector<ir::Value*>& measures,
                 const ir::Attributes& attributes, const std::string& name) {
    if (!builder_.status().ok()) return nullptr;
    inputs.insert(inputs.end(), control.begin(), control.end());
    inputs.insert(inputs.end(), measures.begin(), measures.end());
    ir::Value* sums = builder_.Op(op, inputs, attributes, update_->inputs[0]->name + "." + name);
    if (!builder_.status().ok()) return nullptr;
    const bool is_partial =
        std::any_of(sums->sbp.begin(), sums->sbp.end(), [](Sbp sbp) { return sbp.is_partial(); });
    if (!is_partial) return sums;
    return builder_.Place(sums, AllBroadcast(graph_.mesh()), sums->name + ".whole");
  }

  ir::Graph& graph_;
  ir::Node* update_;
  ir::Builder builder_;
};

}  // namespace

StatusOr<bool> SumFactors::Run(ir::Graph& graph) const {
  ZG_ASSIGN_OR_RETURN(const std::vector<ir::Node*> updates, UnboxedUpdateNodes(graph, name()));
  bool changed = false;
  for (ir::Node* update : updates) {
    if (!IsFactored(*update) || update->inputs.back()->type.dtype == DType::kI64) continue;
    ZG_RETURN_IF_ERROR(Measurer(&graph, update).Run());
    changed = true;
  }
  return changed;
}

}  // namespace zg::zero
