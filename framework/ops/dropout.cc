// Dropout and its gradient. The mask is a function of (seed, step, micro-batch, stream, element
// index), so it is never stored: the gradient draws it again, and so does recomputation.
#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

ir::OpDef Masked(std::string name, std::string doc, InputNames names) {
  ir::OpDef op;
  op.name = std::move(name);
  op.traits.is_random = true;
  op.doc = std::move(doc);
  op.attributes = {{"probability", 0.5, true}, {"stream", int64_t{0}, true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<std::vector<TensorType>> {
    ZG_RETURN_IF_ERROR(CheckRange(call, "probability", 1.0));
    return LikeInputs(call, names);
  };
  // A rank's part along dim 0 is a micro-batch, with a mask of its own; other cuts would change the
  // element index.
  op.sbp_signatures = [](const ir::OpCall& call) {
    std::vector<ir::SbpSignature> signatures;
    if (call.inputs[0].shape.num_dims() > 0) signatures.push_back({{Sbp::S(0)}, {Sbp::S(0)}});
    return signatures;
  };
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({0}); };
  op.flops = [](const ir::OpCall& call) { return call.inputs[0].shape.num_elements(); };
  return op;
}

ir::OpDef Dropout() {
  ir::OpDef op =
      Masked("dropout",
             "y = mask x / (1 - probability), where mask is 0 with that probability and else 1. "
             "Nodes with different `stream`s draw different masks.",
             {"x"});
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    context.set_input_gradient(0, context.builder().Op("dropout_grad", {context.output_gradient()},
                                                       context.node().attributes));
    return Status::Ok();
  };
  return op;
}

ir::OpDef DropoutGrad() {
  ir::OpDef op =
      Masked("dropout_grad", "dx = mask dy / (1 - probability), with dropout's mask.", {"dy"});
  op.not_differentiable = kNoSecondDerivative;
  return op;
}

}  // namespace

void RegisterDropoutOps(ir::OpRegistry& registry) {
  registry.Register(Dropout());
  registry.Register(DropoutGrad());
}

}  // namespace zg
