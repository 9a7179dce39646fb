#include "framework/ops/activation.h"

#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

// An activation of one input, or the gradient of one: elementwise, with one flop count for each
// element.
ir::OpDef Elementwise(std::string name, std::string doc, InputNames names,
                      int64_t flops_per_element) {
  ir::OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.min_inputs = op.max_inputs = static_cast<int>(names.size());
  op.traits.is_elementwise = true;
  op.infer_shape = [names](const ir::OpCall& call) { return LikeInputs(call, names); };
  op.flops = [flops_per_element](const ir::OpCall& call) {
    return flops_per_element * call.inputs[0].shape.num_elements();
  };
  return op;
}

// Both inputs split alike, or a partial gradient with a whole function value.
std::vector<ir::SbpSignature> GradSignatures(const ir::OpCall& call) {
  std::vector<ir::SbpSignature> signatures = SplitAnyDim(call);
  signatures.push_back({{Sbp::P(), Sbp::B()}, {Sbp::P()}});
  return signatures;
}

ir::OpDef Relu() {
  ir::OpDef op = Elementwise("relu", "y = max(x, 0).", {"x"}, 1);
  op.sbp_signatures = SplitAnyDim;
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    context.set_input_gradient(
        0, context.builder().Op("relu_grad", {context.output_gradient(), context.output(0)}));
    return Status::Ok();
  };
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({0}); };
  return op;
}

ir::OpDef ReluGrad() {
  ir::OpDef op =
      Elementwise("relu_grad", "dx = dy where relu's output y > 0, else 0.", {"dy", "y"}, 1);
  op.sbp_signatures = GradSignatures;
  op.not_differentiable = kNoSecondDerivative;
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({0, 1}); };
  return op;
}

ir::OpDef Gelu() {
  ir::OpDef op = Elementwise("gelu", "y = x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2.", {"x"},
                             kGeluFlops);
  op.sbp_signatures = SplitAnyDim;
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    context.set_input_gradient(
        0, context.builder().Op("gelu_grad", {context.output_gradient(), context.input(0)}));
    return Status::Ok();
  };
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({0}); };
  return op;
}

ir::OpDef GeluGrad() {
  ir::OpDef op =
      Elementwise("gelu_grad",
                  "dx = dy gelu'(x) with t = tanh(sqrt(2/pi) (x + 0.044715 x^3)): gelu'(x) = "
                  "(1 + t + x (1 - t^2) sqrt(2/pi) (1 + 3 * 0.044715 x^2)) / 2.",
                  {"dy", "x"}, kGeluGradFlops);
  op.sbp_signatures = GradSignatures;
  op.not_differentiable = kNoSecondDerivative;
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({0, 1}); };
  return op;
}

}  // namespace

void RegisterActivationOps(ir::OpRegistry& registry) {
  registry.Register(Relu());
  registry.Register(ReluGrad());
  registry.Register(Gelu());
  registry.Register(GeluGrad());
}

}  // namespace zg
