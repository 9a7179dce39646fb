#include "framework/ops/op_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/base/check.h"

namespace zg {

Status Rejected(const ir::OpCall& call, const InputNames& names, std::string_view problem) {
  std::vector<std::string> inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    inputs.push_back(fmt::format("{} {}", names[i], call.inputs[i].ToString()));
  }
  return InvalidArgument("{}: {}: {}", call.op->name, problem, fmt::join(inputs, ", "));
}

Status CheckOneFloatDType(const ir::OpCall& call, const InputNames& names,
                          const InputNames& floats) {
  const TensorType* first = nullptr;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const bool listed = std::find(floats.begin(), floats.end(), names[i]) != floats.end();
    if (!floats.empty() && !listed) continue;
    const TensorType& input = call.inputs[i];
    if (!IsFloat(input.dtype)) {
      return Rejected(call, names,
                      fmt::format("{} is not floating-point, convert with to(x, dtype)", names[i]));
    }
    if (first == nullptr) first = &input;
    if (input.dtype != first->dtype) return Rejected(call, names, "dtypes differ");
  }
  return Status::Ok();
}

Status CheckAllAlike(const ir::OpCall& call, const InputNames& names) {
  ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
  for (const TensorType& input : call.inputs) {
    if (input.shape != call.inputs[0].shape) return Rejected(call, names, "shapes differ");
  }
  return Status::Ok();
}

Status CheckRange(const ir::OpCall& call, std::string_view name, double end) {
  const double value = call.attributes.Float(name);
  if (value >= 0.0 && value < end) return Status::Ok();
  const std::string upper =
      end == std::numeric_limits<double>::infinity() ? "" : fmt::format(" < {}", end);
  return InvalidArgument("{}: {} is {}, expected 0 <= {}{}", call.op->name, name, value, name,
                         upper);
}

Shape WithLastDim(const Shape& shape, int64_t size) {
  Shape result = shape;
  result.set_dim(-1, size);
  return result;
}

Shape WithoutLastDim(const Shape& shape) {
  ZG_CHECK(shape.num_dims() > 0, "a scalar has no last dim");
  return Shape(std::vector<int64_t>(shape.dims().begin(), shape.dims().end() - 1));
}

int64_t Rows(const Shape& shape) { return WithoutLastDim(shape).num_elements(); }

StatusOr<std::vector<TensorType>> LikeInputs(const ir::OpCall& call, const InputNames& names) {
  ZG_RETURN_IF_ERROR(CheckAllAlike(call, names));
  return std::vector<TensorType>{call.inputs[0]};
}

std::vector<ir::SbpSignature> SplitAnyDim(const ir::OpCall& call) {
  std::vector<ir::SbpSignature> signatures;
  for (int dim = 0; dim < call.inputs[0].shape.num_dims(); ++dim) {
    signatures.push_back({std::vector<Sbp>(call.inputs.size(), Sbp::S(dim)),
                          std::vector<Sbp>(call.op->num_outputs, Sbp::S(dim))});
  }
  return signatures;
}

std::vector<ir::SbpSignature> SplitOtherDims(const ir::OpCall& call) {
  std::vector<ir::SbpSignature> signatures = SplitAnyDim(call);
  signatures.erase(signatures.begin() + call.attributes.Int("dim"));
  return signatures;
}

std::vector<ir::AliasRule> InPlaceOf(std::initializer_list<int> inputs) {
  std::vector<ir::AliasRule> rules;
  for (int input : inputs) {
    ir::AliasRule rule;
    rule.kind = ir::AliasRule::Kind::kInPlace;
    rule.input = input;
    rules.push_back(rule);
  }
  return rules;
}

std::vector<ir::AliasRule> InsideInput(int64_t offset_elements) {
  ir::AliasRule rule;
  rule.kind = ir::AliasRule::Kind::kOutputInsideInput;
  rule.offset_elements = offset_elements;
  return {rule};
}

Status CheckPart(const ir::OpCall& call, const InputNames& names, size_t input, int64_t size) {
  const int64_t num_parts = call.attributes.Int("parts");
  if (call.inputs.size() <= input) {
    if (num_parts == 1) return Status::Ok();
    return InvalidArgument("{}: got one of {} parts without its number, expected an operand part",
                           call.op->name, num_parts);
  }
  const TensorType& part = call.inputs[input];
  if (part.dtype != DType::kI64 || part.shape.num_dims() != 1) {
    return Rejected(call, names, "part is not i64[n]");
  }
  const int64_t own_parts = part.shape.dim(0);
  if (own_parts < 1 || own_parts > num_parts || size % own_parts != 0) {
    return Rejected(
        call, names,
        fmt::format("got {} of {} parts of a dim of {}, expected 1 to {} that divide it", own_parts,
                    num_parts, size, num_parts));
  }
  return Status::Ok();
}

Status CheckOnlyFirstUsed(const ir::GradientContext& context, int count) {
  const ir::Node& node = context.node();
  for (int i = count; i < static_cast<int>(node.outputs.size()); ++i) {
    if (context.output_gradient(i) == nullptr) continue;
    return InvalidArgument("{} %{}: the loss depends on output {}, which has no gradient",
                           node.op->name, node.outputs[0]->name, i);
  }
  return Status::Ok();
}

}  // namespace zg
