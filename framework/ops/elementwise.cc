// Ops on tensors of one type, element by element, and their gradients: the rows of elementwise.inc.
#include <string>
#include <utility>
#include <vector>

#include "framework/base/check.h"
#include "framework/ir/op_registry.h"
#include "framework/ops/elementwise_table.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

// In which operands an op is linear, so that partial terms of them give partial terms of its result
// while the other operands are whole.
enum class Linearity { kNone, kInFirst, kInEach, kInAll };

std::vector<ir::SbpSignature> PartialTerms(Linearity linearity, int num_inputs) {
  const Sbp B = Sbp::B();
  const Sbp P = Sbp::P();
  switch (linearity) {
    case Linearity::kNone:
      return {};
    case Linearity::kInFirst:
      return {{{P, B}, {P}}};
    case Linearity::kInEach:
      return {{{P, B}, {P}}, {{B, P}, {P}}};
    case Linearity::kInAll:
      return {{std::vector<Sbp>(num_inputs, P), {P}}};
  }
  return {};
}

// What a gradient rule's node reads: the gradient of the op's result, the result, an operand.
enum Operand { kDy, kY, kA, kB };

// How the gradient of one operand is computed.
struct GradientRule {
  enum class Kind { kNone, kPassOn, kNode };
  Kind kind = Kind::kNone;
  std::string op = {};  // of the node; empty: the op itself, with its attributes
  std::vector<Operand> operands = {};
  ir::Attributes attributes = {};
};

GradientRule None() { return {}; }
GradientRule Dy() { return {GradientRule::Kind::kPassOn}; }
template <typename... Operands>
GradientRule Node(const char* op, Operands... operands) {
  return {GradientRule::Kind::kNode, op, {operands...}};
}
GradientRule SameOp() { return Node("", kDy); }
GradientRule Scaled(double factor) {
  return {GradientRule::Kind::kNode, "scale", {kDy}, {{"factor", factor}}};
}

ir::Value* Gradient(const GradientRule& rule, ir::GradientContext& context) {
  if (rule.kind == GradientRule::Kind::kPassOn) return context.output_gradient();
  std::vector<ir::Value*> inputs;
  for (const Operand operand : rule.operands) {
    switch (operand) {
      case kDy:
        inputs.push_back(context.output_gradient());
        break;
      case kY:
        inputs.push_back(context.output(0));
        break;
      case kA:
        inputs.push_back(context.input(0));
        break;
      case kB:
        inputs.push_back(context.input(1));
        break;
    }
  }
  if (!rule.op.empty()) return context.builder().Op(rule.op, std::move(inputs), rule.attributes);
  const ir::Node& node = context.node();
  return context.builder().Op(node.op->name, std::move(inputs), node.attributes);
}

// `gradients` has a rule for each operand; the only one of an op that is itself a gradient is
// None().
ir::OpDef Elementwise(ElementwiseCode code, InputNames names, std::string doc, Linearity linearity,
                      std::vector<GradientRule> gradients) {
  const ElementwiseRow& row = RowOf(code);
  ir::OpDef op;
  op.name = row.op;
  op.doc = std::move(doc);
  op.min_inputs = op.max_inputs = row.num_inputs;
  op.traits.is_elementwise = true;
  if (!row.attribute.empty()) op.attributes = {{std::string(row.attribute), 1.0, true}};
  op.infer_shape = [names](const ir::OpCall& call) { return LikeInputs(call, names); };
  op.sbp_signatures = [linearity](const ir::OpCall& call) {
    std::vector<ir::SbpSignature> signatures = SplitAnyDim(call);
    for (ir::SbpSignature& partial :
         PartialTerms(linearity, static_cast<int>(call.inputs.size()))) {
      signatures.push_back(std::move(partial));
    }
    return signatures;
  };
  op.aliases = [](const ir::OpCall& call) {
    return call.inputs.size() == 1 ? InPlaceOf({0}) : InPlaceOf({0, 1});
  };
  op.flops = [&row](const ir::OpCall& call) {
    return row.flops * call.inputs[0].shape.num_elements();
  };
  if (gradients[0].kind == GradientRule::Kind::kNone) {
    op.not_differentiable = kNoSecondDerivative;
    return op;
  }
  ZG_CHECK(static_cast<int>(gradients.size()) == row.num_inputs, "{}: {} gradients", row.op,
           gradients.size());
  op.gradient = [gradients](ir::GradientContext& context) {
    for (int i = 0; i < context.num_inputs(); ++i) {
      if (context.needs(i)) context.set_input_gradient(i, Gradient(gradients[i], context));
    }
    return Status::Ok();
  };
  return op;
}

}  // namespace

void RegisterElementwiseOps(ir::OpRegistry& registry) {
#define ZG_UNARY(Name, name, x, doc, flops, linearity, formula, ...) \
  registry.Register(Elementwise(ElementwiseCode::k##Name, {#x}, doc, linearity, {__VA_ARGS__}));
#define ZG_UNARY_WITH(Name, name, x, attribute, doc, flops, linearity, formula, ...) \
  registry.Register(Elementwise(ElementwiseCode::k##Name, {#x}, doc, linearity, {__VA_ARGS__}));
#define ZG_BINARY(Name, name, a, b, doc, flops, linearity, formula, ...) \
  registry.Register(Elementwise(ElementwiseCode::k##Name, {#a, #b}, doc, linearity, {__VA_ARGS__}));
#include "framework/ops/elementwise.inc"
}

}  // namespace zg
