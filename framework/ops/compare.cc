// Comparisons, whose results are of dtype bool, and logical operations on two of them.
#include <fmt/format.h>

#include "framework/ir/op_registry.h"
#include "framework/ops/broadcasting.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

constexpr char kNoGradient[] = "its results are true or false";

StatusOr<Types> TruthOf(const ir::OpCall& call, const InputNames& names) {
  const TensorType& first = call.inputs[0];
  const TensorType& last = call.inputs.back();
  if (first.dtype != last.dtype) {
    return Rejected(call, names, "dtypes differ, expected one; convert with to(x, dtype)");
  }
  const std::optional<Shape> shape = BroadcastShapes(first.shape, last.shape);
  if (!shape.has_value()) {
    return Rejected(call, names, "shapes differ, and cannot be broadcast to one");
  }
  return Types{{DType::kBool, *shape}};
}

ir::OpDef OfTwo(std::string name, std::string doc) {
  ir::OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.min_inputs = op.max_inputs = 2;
  op.not_differentiable = kNoGradient;
  op.traits.keeps_groups = true;
  op.traits.promotes_types = true;
  op.sbp_signatures = [](const ir::OpCall& call) { return SplitAnyDimOf(ResultShape(call), call); };
  op.flops = [](const ir::OpCall& call) { return ResultShape(call).num_elements(); };
  return op;
}

ir::OpDef Comparison(const char* name, const char* relation) {
  ir::OpDef op =
      OfTwo(name, fmt::format("y = whether a {} b; of one operand, whether a {} `value`. False of "
                              "NaN but for !=.",
                              relation, relation));
  op.min_inputs = 1;
  op.attributes = {{"value", 0.0}};
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    const InputNames names = {"a", "b"};
    const DType dtype = call.inputs[0].dtype;
    if (!IsFloat(dtype) && dtype != DType::kI64 && dtype != DType::kBool) {
      return Rejected(call, names, "a is not floating-point, i64 or bool");
    }
    return TruthOf(call, names);
  };
  return op;
}

ir::OpDef Logical(const char* name, const char* word) {
  ir::OpDef op = OfTwo(name, fmt::format("y = a {} b, of bools.", word));
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    const InputNames names = {"a", "b"};
    if (call.inputs[0].dtype != DType::kBool) return Rejected(call, names, "a is not bool");
    return TruthOf(call, names);
  };
  return op;
}

}  // namespace

void RegisterCompareOps(ir::OpRegistry& registry) {
  registry.Register(Comparison("equal", "=="));
  registry.Register(Comparison("not_equal", "!="));
  registry.Register(Comparison("less", "<"));
  registry.Register(Comparison("less_equal", "<="));
  registry.Register(Comparison("greater", ">"));
  registry.Register(Comparison("greater_equal", ">="));
  registry.Register(Logical("logical_and", "and"));
  registry.Register(Logical("logical_or", "or"));
}

}  // namespace zg
