// Elements chosen by a condition of dtype bool. Operands are broadcast as in NumPy.
#include <fmt/format.h>

#include "framework/ir/op_registry.h"
#include "framework/ops/broadcasting.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

const InputNames kWhere = {"condition", "a", "b"};
const InputNames kMaskedFill = {"x", "mask"};

const Sbp B = Sbp::B();
const Sbp P = Sbp::P();

std::optional<Shape> ResultShape(const ir::OpCall& call) {
  std::optional<Shape> shape = call.inputs[0].shape;
  for (const TensorType& input : call.inputs) {
    if (shape.has_value()) shape = BroadcastShapes(*shape, input.shape);
  }
  return shape;
}

StatusOr<Types> ResultType(const ir::OpCall& call, const InputNames& names, DType dtype) {
  const std::optional<Shape> shape = ResultShape(call);
  if (shape.has_value()) return Types{{dtype, *shape}};
  return Rejected(call, names, "shapes differ, and cannot be broadcast to one");
}

// The gradient of an operand that is chosen where the condition is `where`.
ir::Value* GradientWhere(ir::GradientContext& context, ir::Value* condition, bool where,
                         const TensorType& type) {
  ir::Value* const own = context.builder().Op("masked_fill", {context.output_gradient(), condition},
                                              {{"value", 0.0}, {"where", !where}});
  return SumToType(context.builder(), own, type);
}

ir::OpDef Where() {
  ir::OpDef op;
  op.name = "where";
  op.doc = "y = a where the condition holds, else b.";
  op.traits.promotes_types = true;
  op.min_inputs = op.max_inputs = 3;
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    if (call.inputs[0].dtype != DType::kBool) {
      return Rejected(call, kWhere, "condition is not bool");
    }
    if (call.inputs[1].dtype != call.inputs[2].dtype) {
      return Rejected(call, kWhere, "dtypes of a and b differ");
    }
    return ResultType(call, kWhere, call.inputs[1].dtype);
  };
  op.traits.keeps_groups = true;
  op.sbp_signatures = [](const ir::OpCall& call) {
    std::vector<ir::SbpSignature> signatures = SplitAnyDimOf(*ResultShape(call), call);
    if (IsFloat(call.inputs[1].dtype)) signatures.push_back({{B, P, P}, {P}});
    return signatures;
  };
  op.aliases = [](const ir::OpCall& call) {
    return InPlaceOfFullSize({call.inputs[1].dtype, *ResultShape(call)}, call);
  };
  op.gradient = [](ir::GradientContext& context) {
    for (const int i : {1, 2}) {
      if (!context.needs(i)) continue;
      context.set_input_gradient(
          i, GradientWhere(context, context.input(0), i == 1, context.input(i)->type));
    }
    return Status::Ok();
  };
  return op;
}

ir::OpDef MaskedFill() {
  ir::OpDef op;
  op.name = "masked_fill";
  op.traits.keeps_dtype = true;
  op.doc = "y = `value` where the mask is `where`, else x.";
  op.min_inputs = op.max_inputs = 2;
  op.attributes = {{"value", 0.0, true}, {"where", true}};
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    if (call.inputs[1].dtype != DType::kBool)
      return Rejected(call, kMaskedFill, "mask is not bool");
    const DType dtype = call.inputs[0].dtype;
    if (const double value = call.attributes.Float("value"); !CanHold(dtype, value)) {
      return Rejected(call, kMaskedFill,
                      fmt::format("{} does not hold the value {}", DTypeName(dtype), value));
    }
    return ResultType(call, kMaskedFill, call.inputs[0].dtype);
  };
  op.traits.keeps_groups = true;
  op.sbp_signatures = [](const ir::OpCall& call) {
    std::vector<ir::SbpSignature> signatures = SplitAnyDimOf(*ResultShape(call), call);
    const bool adds_up = IsFloat(call.inputs[0].dtype) && call.attributes.Float("value") == 0.0;
    if (adds_up) signatures.push_back({{P, B}, {P}});
    return signatures;
  };
  op.aliases = [](const ir::OpCall& call) {
    return InPlaceOfFullSize({call.inputs[0].dtype, *ResultShape(call)}, call);
  };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    const bool filled = context.node().attributes.Bool("where");
    context.set_input_gradient(
        0, GradientWhere(context, context.input(1), !filled, context.input(0)->type));
    return Status::Ok();
  };
  return op;
}

}  // namespace

void RegisterMaskingOps(ir::OpRegistry& registry) {
  registry.Register(Where());
  registry.Register(MaskedFill());
}

}  // namespace zg
