#include "framework/ops/index_rules.h"

#include <fmt/format.h>

#include <string>

namespace zg {

Status CheckIndex(const ir::OpCall& call, const InputNames& names, IndexSize size) {
  const Shape& x = call.inputs[0].shape;
  const int64_t dim = call.attributes.Int("dim");
  if (dim < 0 || dim >= x.num_dims()) {
    return Rejected(call, names, fmt::format("got dim {}, expected one of its dims", dim));
  }
  if (call.inputs[1].dtype != DType::kI64) return Rejected(call, names, "index is not i64");
  Shape like = call.inputs[1].shape;
  if (like.num_dims() == x.num_dims() && size == IndexSize::kAny) {
    like.set_dim(static_cast<int>(dim), x.dim(static_cast<int>(dim)));
  }
  if (like == x) return Status::Ok();
  return Rejected(call, names,
                  size == IndexSize::kSame ? std::string("shapes differ")
                                           : fmt::format("shapes differ in more than dim {}", dim));
}

std::vector<ir::SbpSignature> OtherDimsSplit(const ir::OpCall& call) {
  std::vector<ir::SbpSignature> signatures;
  for (int other = 0; other < call.inputs[0].shape.num_dims(); ++other) {
    if (other == call.attributes.Int("dim")) continue;
    signatures.push_back({std::vector<Sbp>(call.inputs.size(), Sbp::S(other)), {Sbp::S(other)}});
  }
  return signatures;
}

}  // namespace zg
