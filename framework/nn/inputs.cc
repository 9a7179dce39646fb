#include "framework/nn/inputs.h"

#include <algorithm>

#include "framework/nn/trace.h"

namespace zg {
namespace {

Status CheckType(const TensorType& type, Sbp placement) {
  const std::vector<int64_t>& dims = type.shape.dims();
  if (std::any_of(dims.begin(), dims.end(), [](int64_t dim) { return dim < 1; })) {
    return InvalidArgument("got shape {}, expected dims >= 1", type.shape.ToString());
  }
  if (placement.is_broadcast()) return Status::Ok();
  if (placement.is_split() && placement.dim() >= 0 && placement.dim() < type.shape.num_dims()) {
    return Status::Ok();
  }
  return InvalidArgument("got placement {} for {}, expected B, or S(dim) with one of its dims",
                         placement.ToString(), type.ToString());
}

}  // namespace

Var Inputs::f32(const std::string& name, const Shape& shape, Sbp placement) {
  return Add(name, {DType::kF32, shape}, placement);
}

Var Inputs::i64(const std::string& name, const Shape& shape, Sbp placement) {
  return Add(name, {DType::kI64, shape}, placement);
}

Var Inputs::boolean(const std::string& name, const Shape& shape, Sbp placement) {
  return Add(name, {DType::kBool, shape}, placement);
}

Var Inputs::Add(const std::string& name, const TensorType& type, Sbp placement) {
  if (const Status legal = nn::CheckName("input", name); !legal.ok()) return trace_->Fail(legal);
  if (!names_.insert(name).second) {
    return trace_->Fail(InvalidArgument("two inputs are named '{}'", name));
  }
  if (const Status legal = CheckType(type, placement); !legal.ok()) {
    return trace_->Fail(legal.WithContext(fmt::format("input '{}'", name)));
  }
  return trace_->Append(
      "input", {},
      {{"name", name}, {"dtype", type.dtype}, {"shape", type.shape}, {"placement", placement}},
      name);
}

}  // namespace zg
