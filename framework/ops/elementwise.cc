#include "framework/ops/elementwise.h"

#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

const Sbp B = Sbp::B();
const Sbp P = Sbp::P();

// Inputs and output of one type; `partial` are the placements besides the splits.
ir::OpDef Elementwise(std::string name, std::string doc, InputNames names,
                      std::vector<ir::SbpSignature> partial) {
  ir::OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.min_inputs = op.max_inputs = static_cast<int>(names.size());
  op.traits.is_elementwise = true;
  op.infer_shape = [names](const ir::OpCall& call) { return LikeInputs(call, names); };
  op.sbp_signatures = [partial](const ir::OpCall& call) {
    std::vector<ir::SbpSignature> signatures = SplitAnyDim(call);
    signatures.insert(signatures.end(), partial.begin(), partial.end());
    return signatures;
  };
  op.flops = [](const ir::OpCall& call) { return call.inputs[0].shape.num_elements(); };
  return op;
}

ir::OpDef Add() {
  ir::OpDef op = Elementwise("add", "y = a + b.", {"a", "b"}, {{{P, P}, {P}}});
  op.gradient = [](ir::GradientContext& context) {
    for (int i = 0; i < 2; ++i) {
      if (context.needs(i)) context.set_input_gradient(i, context.output_gradient());
    }
    return Status::Ok();
  };
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({0, 1}); };
  return op;
}

ir::OpDef Subtract() {
  ir::OpDef op = Elementwise("subtract", "y = a - b.", {"a", "b"}, {{{P, P}, {P}}});
  op.gradient = [](ir::GradientContext& context) {
    ir::Value* dy = context.output_gradient();
    if (context.needs(0)) context.set_input_gradient(0, dy);
    if (context.needs(1)) {
      context.set_input_gradient(1, context.builder().Op("scale", {dy}, {{"factor", -1.0}}));
    }
    return Status::Ok();
  };
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({0, 1}); };
  return op;
}

ir::OpDef Multiply() {
  ir::OpDef op = Elementwise("multiply", "y = a b.", {"a", "b"}, {{{P, B}, {P}}, {{B, P}, {P}}});
  op.gradient = [](ir::GradientContext& context) {
    for (int i = 0; i < 2; ++i) {
      if (!context.needs(i)) continue;
      context.set_input_gradient(
          i, context.builder().Op("multiply", {context.output_gradient(), context.input(1 - i)}));
    }
    return Status::Ok();
  };
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({0, 1}); };
  return op;
}

ir::OpDef Scale() {
  ir::OpDef op = Elementwise("scale", "y = factor x.", {"x"}, {{{P}, {P}}});
  op.attributes = {{"factor", 1.0, true}};
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    const double factor = context.node().attributes.Float("factor");
    context.set_input_gradient(
        0, context.builder().Op("scale", {context.output_gradient()}, {{"factor", factor}}));
    return Status::Ok();
  };
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({0}); };
  return op;
}

}  // namespace

void RegisterElementwiseOps(ir::OpRegistry& registry) {
  registry.Register(Add());
  registry.Register(Subtract());
  registry.Register(Multiply());
  registry.Register(Scale());
}

}  // namespace zg
