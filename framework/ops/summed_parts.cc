#include "framework/ops/summed_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace zg {
namespace {

constexpr char kSummedParts[] = "summed_parts";

// {count, dim, groups} of SummedParts; empty: one part.
using Numbers = std::vector<int64_t>;

Status CheckParts(const ir::OpCall& call) {
  if (!call.attributes.Has(kSummedParts)) return Status::Ok();
  const Numbers& numbers = call.attributes.Ints(kSummedParts);
  if (numbers.empty()) return Status::Ok();
  const Shape& shape = call.inputs[0].shape;
  const auto is_legal = [&] {
    if (numbers.size() != 3 || call.inputs[0].dtype != DType::kF32) return false;
    const int64_t count = numbers[0], dim = numbers[1], groups = numbers[2];
    if (count < 1 || (count & (count - 1)) != 0 || groups < 1) return false;
    return dim >= 0 && dim < shape.num_dims() && shape.dim(static_cast<int>(dim)) % groups == 0 &&
           shape.dim(static_cast<int>(dim)) / groups % count == 0;
  };
  if (is_legal()) return Status::Ok();
  return InvalidArgument(
      "{}: got summed_parts [{}], expected the number of parts, a power of two, the dim of {} that "
      "they cut, and the number of its groups; only of f32",
      call.op->name, fmt::join(numbers, ", "), call.inputs[0].ToString());
}

}  // namespace

SummedParts SummedParts::Of(const ir::OpCall& call) {
  if (!call.attributes.Has(kSummedParts)) return {};
  const Numbers& numbers = call.attributes.Ints(kSummedParts);
  if (numbers.empty()) return {};
  return {numbers[0], static_cast<int>(numbers[1]), numbers[2]};
}

ir::OpDef WithSummedParts(ir::OpDef op) {
  op.attributes.push_back({kSummedParts, Numbers{}});
  op.infer_shape =
      [infer_shape = op.infer_shape](const ir::OpCall& call) -> StatusOr<std::vector<TensorType>> {
    ZG_ASSIGN_OR_RETURN(std::vector<TensorType> types, infer_shape(call));
    ZG_RETURN_IF_ERROR(CheckParts(call));
    return types;
  };
  return op;
}

bool CanSumInParts(const ir::OpDef& op) {
  return std::any_of(op.attributes.begin(), op.attributes.end(),
                     [](const ir::AttributeDef& def) { return def.name == kSummedParts; });
}

void SetSummedParts(const SummedParts& parts, ir::Attributes* attributes) {
  attributes->Set(kSummedParts, Numbers{parts.count, parts.dim, parts.groups});
}

}  // namespace zg
