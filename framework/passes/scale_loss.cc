#include "framework/passes/scale_loss.h"

#include "framework/ir/builder.h"

namespace zg {

StatusOr<bool> ScaleLoss::Run(ir::Graph& graph) const {
  ir::Section* const backward = graph.section(ir::SectionKind::kBackward);
  if (backward->nodes.empty() || graph.FindTensor(kLossScaler) != nullptr) return false;
  ir::Node* const seed = backward->nodes.front();
  if (seed->op->traits.kind != ir::OpKind::kConstant) {
    return InvalidArgument("backward begins with {}, expected the constant of build-backward",
                           seed->op->name);
  }
  ir::Builder builder(&graph, backward);
  builder.InsertBefore(seed);
  ir::Value* state =
      builder.Variable(kLossScaler, {DType::kF32, Shape{4}}, Initializer::Zeros(), Role::kControl);
  ir::Value* scaled = builder.Op("loss_seed", {state}, {{"value", seed->attributes.Float("value")}},
                                 "scaled_loss_seed");
  ZG_RETURN_IF_ERROR(builder.status());
  graph.ReplaceAllUses(seed->outputs[0], scaled);
  graph.Erase(seed);
  return true;
}

}  // namespace zg
