// Elementwise ops on tensors of one type, and their gradients: the rows of elementwise.inc.
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/base/check.h"
#include "framework/ir/op_registry.h"
#include "framework/ops/elementwise_table.h"
#include "framework/ops/op_rules.h"
#include "framework/ops/terms.h"

namespace zg {
namespace {

// The operands in which an op is linear, so that partial terms of them give partial terms of its
// result while the other operands are whole.
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

// dx = p f''(x), for the functions whose gradients have gradients of several terms.
Term SiluSecond(Term p, Term x) {  // s (1 - s) (2 + x (1 - 2 s)), s = sigmoid(x)
  const Term s = Sigmoid(x);
  return SigmoidGrad(p, s) * Shift(x * Shift(-2.0 * s, 1.0), 2.0);
}

Term GeluSecond(Term p, Term x) {  // (1 - t^2) (u' + x (u'' / 2 - t u'^2)), t = tanh(u)
  constexpr double kFactor = 0.7978845608028654;  // sqrt(2 / pi)
  constexpr double kCubic = 0.044715;
  const Term square = Square(x);
  const Term t = Tanh(kFactor * (x * Shift(kCubic * square, 1.0)));
  const Term slope = Shift((3.0 * kFactor * kCubic) * square, kFactor);
  const Term bend = Subtract((3.0 * kFactor * kCubic) * x, t * Square(slope));
  return TanhGrad(p, t) * Add(slope, x * bend);
}

Term GeluErfSecond(Term p, Term x) {  // e^(-x^2 / 2) (2 - x^2) / sqrt(2 pi)
  constexpr double kFactor = 0.3989422804014327;
  const Term square = Square(x);
  return (kFactor * p) * (Exp(-0.5 * square) * Shift(-square, 2.0));
}

struct NoGradient {};
NoGradient None() { return {}; }

// The names that a formula may use.
struct Terms {
  Term dy, y, a, b;
  double number = 0.0;  // the attribute
};
using GradientRule = std::function<Term(const Terms&)>;

// Makes a rule from a lambda with the formula; no rule from one that is None().
template <typename Formula>
GradientRule Rule(const Formula& formula) {
  if constexpr (std::is_same_v<decltype(formula(Terms())), NoGradient>) {
    return nullptr;
  } else {
    return formula;
  }
}

StatusOr<std::vector<TensorType>> InferType(const ir::OpCall& call, const InputNames& names) {
  ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
  const Shape& first = call.inputs[0].shape;
  if (call.inputs.size() == 2 && !BroadcastShapes(first, call.inputs[1].shape).has_value()) {
    return Rejected(call, names, "shapes differ, and cannot be broadcast to one");
  }
  return std::vector<TensorType>{{call.inputs[0].dtype, ResultShape(call)}};
}

Status AppendGradients(const std::vector<GradientRule>& rules, std::string_view attribute,
                       ir::GradientContext& context) {
  ir::Builder* const builder = &context.builder();
  const int last = context.num_inputs() - 1;
  Terms terms = {{builder, context.output_gradient()},
                 {builder, context.output(0)},
                 {builder, context.input(0)},
                 {builder, context.input(last)}};
  if (!attribute.empty()) terms.number = context.node().attributes.Float(attribute);
  for (int i = 0; i <= last; ++i) {
    if (!context.needs(i)) continue;
    const Term gradient = rules[i](terms);
    context.set_input_gradient(i, SumToType(*builder, gradient.value, context.input(i)->type));
  }
  return Status::Ok();
}

// PyTorch's autocast list.
bool ComputesInF32(ElementwiseCode code) {
  switch (code) {
    case ElementwiseCode::kExp:
    case ElementwiseCode::kLog:
    case ElementwiseCode::kPow:
    case ElementwiseCode::kPower:
    case ElementwiseCode::kReciprocal:
    case ElementwiseCode::kRsqrt:
    case ElementwiseCode::kSoftplus:
      return true;
    default:
      return false;
  }
}

// `gradients` has a rule for each operand; the only rule of an op that is itself a gradient is
// null.
ir::OpDef Elementwise(ElementwiseCode code, InputNames names, std::string doc, Linearity linearity,
                      std::vector<GradientRule> gradients) {
  const ElementwiseRow& row = RowOf(code);
  ir::OpDef op;
  op.name = row.op;
  op.doc = std::move(doc);
  op.min_inputs = op.max_inputs = row.num_inputs;
  op.traits.is_elementwise = true;
  op.traits.promotes_types = true;
  op.traits.keeps_groups = true;
  op.traits.computes_in_f32 = ComputesInF32(code);
  if (!row.attribute.empty()) op.attributes = {{std::string(row.attribute), 1.0, true}};
  op.infer_shape = [names](const ir::OpCall& call) { return InferType(call, names); };
  op.sbp_signatures = [linearity](const ir::OpCall& call) {
    std::vector<ir::SbpSignature> signatures = SplitAnyDimOf(ResultShape(call), call);
    for (ir::SbpSignature& partial :
         PartialTerms(linearity, static_cast<int>(call.inputs.size()))) {
      signatures.push_back(std::move(partial));
    }
    return signatures;
  };
  op.aliases = [](const ir::OpCall& call) {
    return InPlaceOfFullSize({call.inputs[0].dtype, ResultShape(call)}, call);
  };
  op.flops = [&row](const ir::OpCall& call) {
    return row.flops * ResultShape(call).num_elements();
  };
  if (gradients[0] == nullptr) {
    op.not_differentiable = kNoSecondDerivative;
    return op;
  }
  ZG_CHECK(static_cast<int>(gradients.size()) == row.num_inputs, "{}: {} gradients", row.op,
           gradients.size());
  op.gradient = [gradients, &row](ir::GradientContext& context) {
    return AppendGradients(gradients, row.attribute, context);
  };
  return op;
}

}  // namespace

// The formula of one gradient as a lambda in which names stand for Terms, and `attribute` for that
// of the node. The op's own operands may also be called dy and y.
#define ZG_RULE(first, second, attribute, formula)                    \
  Rule([]([[maybe_unused]] const Terms& terms) {                      \
    [[maybe_unused]] const Term dy = terms.dy, y = terms.y, ddx = dy; \
    {                                                                 \
      [[maybe_unused]] const Term first = terms.a, second = terms.b;  \
      [[maybe_unused]] const double attribute = terms.number;         \
      return formula;                                                 \
    }                                                                 \
  })
// As many as there are formulas: one or two.
#define ZG_ONE_RULE(first, second, attribute, formula) ZG_RULE(first, second, attribute, formula)
#define ZG_TWO_RULES(first, second, attribute, of_first, of_second) \
  ZG_RULE(first, second, attribute, of_first), ZG_RULE(first, second, attribute, of_second)
#define ZG_THIRD(first, second, third, ...) third
#define ZG_RULES(first, second, attribute, ...) \
  ZG_THIRD(__VA_ARGS__, ZG_TWO_RULES, ZG_ONE_RULE, )(first, second, attribute, __VA_ARGS__)

void RegisterElementwiseOps(ir::OpRegistry& registry) {
#define ZG_UNARY(Name, name, x, doc, flops, linearity, formula, gradient)       \
  registry.Register(Elementwise(ElementwiseCode::k##Name, {#x}, doc, linearity, \
                                {ZG_RULE(x, none, none_too, gradient)}));
#define ZG_UNARY_WITH(Name, name, x, attribute, doc, flops, linearity, formula, gradient) \
  registry.Register(Elementwise(ElementwiseCode::k##Name, {#x}, doc, linearity,           \
                                {ZG_RULE(x, none, attribute, gradient)}));
#define ZG_BINARY(Name, name, a, b, doc, flops, linearity, formula, ...)            \
  registry.Register(Elementwise(ElementwiseCode::k##Name, {#a, #b}, doc, linearity, \
                                {ZG_RULES(a, b, none, __VA_ARGS__)}));
#define ZG_BINARY_WITH(Name, name, a, b, attribute, doc, flops, linearity, formula, ...) \
  registry.Register(Elementwise(ElementwiseCode::k##Name, {#a, #b}, doc, linearity,      \
                                {ZG_RULES(a, b, attribute, __VA_ARGS__)}));
#include "framework/ops/elementwise.inc"
}

}  // namespace zg
