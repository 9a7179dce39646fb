#include "framework/ops/broadcasting.h"

#include <algorithm>

namespace zg {

std::optional<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  const int num_dims = std::max(a.num_dims(), b.num_dims());
  std::vector<int64_t> dims(num_dims);
  for (int dim = 1; dim <= num_dims; ++dim) {  // from the last one
    const int64_t of_a = dim <= a.num_dims() ? a.dim(-dim) : 1;
    const int64_t of_b = dim <= b.num_dims() ? b.dim(-dim) : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) return std::nullopt;
    dims[num_dims - dim] = of_a == 1 ? of_b : of_a;
  }
  return Shape(std::move(dims));
}

Shape ResultShape(const ir::OpCall& call) {
  const Shape& first = call.inputs[0].shape;
  return BroadcastShapes(first, call.inputs.back().shape).value_or(first);
}

std::vector<ir::SbpSignature> SplitAnyDimOf(const Shape& result, const ir::OpCall& call) {
  std::vector<ir::SbpSignature> signatures;
  for (int dim = 0; dim < result.num_dims(); ++dim) {
    std::vector<Sbp> inputs;
    for (const TensorType& input : call.inputs) {
      const int own = dim - (result.num_dims() - input.shape.num_dims());
      const bool has_it = own >= 0 && input.shape.dim(own) == result.dim(dim);
      inputs.push_back(has_it ? Sbp::S(own) : Sbp::B());
    }
    signatures.push_back({std::move(inputs), std::vector<Sbp>(call.op->num_outputs, Sbp::S(dim))});
  }
  return signatures;
}

std::vector<ir::AliasRule> InPlaceOfFullSize(const TensorType& result, const ir::OpCall& call) {
  std::vector<ir::AliasRule> rules;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i] != result) continue;
    ir::AliasRule rule;
    rule.input = static_cast<int>(i);
    rules.push_back(rule);
  }
  return rules;
}

ir::Value* SumToType(ir::Builder& builder, ir::Value* gradient, const TensorType& type) {
  if (gradient == nullptr || gradient->type.shape == type.shape) return gradient;
  const Shape& from = gradient->type.shape;
  const int64_t leading = from.num_dims() - type.shape.num_dims();
  std::vector<int64_t> kept;  // as dims of size 1
  for (int dim = 0; dim < type.shape.num_dims(); ++dim) {
    if (type.shape.dim(dim) == 1 && from.dim(static_cast<int>(leading) + dim) != 1) {
      kept.push_back(dim);
    }
  }
  std::vector<int64_t> dropped;
  for (int64_t dim = 0; dim < leading; ++dim) dropped.push_back(dim);
  if (!dropped.empty()) gradient = builder.Op("sum", {gradient}, {{"dims", dropped}});
  if (kept.empty()) return gradient;
  return builder.Op("sum", {gradient}, {{"dims", kept}, {"keep_dims", true}});
}

}  // namespace zg
