// Arithmetic of i64 tensors: indices, positions, counts. The functions of framework/nn that have a
// floating-point op of the same meaning choose by dtype.
#include <fmt/format.h>

#include "framework/ir/op_registry.h"
#include "framework/ops/broadcasting.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

StatusOr<Types> InferType(const ir::OpCall& call) {
  const InputNames names = {"a", "b"};
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i].dtype == DType::kI64) continue;
    return Rejected(call, names, fmt::format("{} is not i64", names[i]));
  }
  if (!BroadcastShapes(call.inputs[0].shape, call.inputs.back().shape).has_value()) {
    return Rejected(call, names, "shapes differ, and cannot be broadcast to one");
  }
  return Types{{DType::kI64, ResultShape(call)}};
}

ir::OpDef OnIntegers(const char* name, std::string doc) {
  ir::OpDef op;
  op.name = name;
  op.doc = std::move(doc);
  op.not_differentiable = "its operands are integers";
  op.infer_shape = InferType;
  op.traits.keeps_groups = true;
  op.sbp_signatures = [](const ir::OpCall& call) { return SplitAnyDimOf(ResultShape(call), call); };
  op.aliases = [](const ir::OpCall& call) {
    return InPlaceOfFullSize({DType::kI64, ResultShape(call)}, call);
  };
  op.flops = [](const ir::OpCall& call) { return ResultShape(call).num_elements(); };
  return op;
}

ir::OpDef OfTwo(const char* name, const char* formula) {
  ir::OpDef op = OnIntegers(
      name,
      fmt::format("y = {}, of i64; of one operand, b is `value`. Overflow wraps around.", formula));
  op.min_inputs = 1;
  op.max_inputs = 2;
  op.attributes = {{"value", int64_t{0}}};
  return op;
}

ir::OpDef ByConstant(const char* name, const char* doc) {
  ir::OpDef op = OnIntegers(name, doc);
  op.min_inputs = op.max_inputs = 1;
  op.attributes = {{"value", int64_t{0}, true}};
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    const int64_t value = call.attributes.Int("value");
    if (value < 1) {
      return InvalidArgument("{}: value is {}, expected at least 1", call.op->name, value);
    }
    return InferType(call);
  };
  return op;
}

}  // namespace

void RegisterIntegersOps(ir::OpRegistry& registry) {
  registry.Register(OfTwo("integer_add", "a + b"));
  registry.Register(OfTwo("integer_subtract", "a - b"));
  registry.Register(OfTwo("integer_multiply", "a b"));
  registry.Register(OfTwo("integer_maximum", "max(a, b)"));
  registry.Register(OfTwo("integer_minimum", "min(a, b)"));
  registry.Register(ByConstant(
      "floor_divide", "y = a / `value` of i64, rounded towards minus infinity; value >= 1."));
  registry.Register(ByConstant(
      "remainder", "y = a - `value` floor(a / `value`) of i64, in [0, value); value >= 1."));
}

}  // namespace zg
