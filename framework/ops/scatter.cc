// Which of the elements that an index sends to one place arrives there: the positions with which
// scatter and its kin are gathers.
#include <fmt/format.h>

#include "framework/ir/op_registry.h"
#include "framework/ops/index_rules.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

// i64: the shape of input 0 with `size` elements along `dim`.
StatusOr<Types> PlacesOf(const ir::OpCall& call, const InputNames& names) {
  Shape places = call.inputs[0].shape;
  const int64_t size = call.attributes.Int("size");
  places.set_dim(static_cast<int>(call.attributes.Int("dim")), size);
  if (size >= 0 && places.IsValid()) return Types{{DType::kI64, places}};
  return Rejected(call, names, fmt::format("got size {}, expected one that a tensor has", size));
}

ir::OpDef ScatterLast() {
  const InputNames names = {"index"};
  ir::OpDef op;
  op.name = "scatter_last";
  op.doc =
      "y[.., j, ..] = the last i with index[.., i, ..] = j, or -1 if there is none, for j < size "
      "along `dim`. An index outside [0, size) ends the job.";
  op.attributes = {{"dim", int64_t{0}, true}, {"size", int64_t{0}, true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const int64_t dim = call.attributes.Int("dim");
    if (dim < 0 || dim >= call.inputs[0].shape.num_dims()) {
      return Rejected(call, names, fmt::format("got dim {}, expected one of its dims", dim));
    }
    if (call.inputs[0].dtype != DType::kI64) return Rejected(call, names, "index is not i64");
    return PlacesOf(call, names);
  };
  op.sbp_signatures = OtherDimsSplit;
  op.not_differentiable = "positions have no gradient";
  return op;
}

ir::OpDef ScatterArgmax() {
  const InputNames names = {"x", "index"};
  ir::OpDef op;
  op.name = "scatter_argmax";
  op.doc =
      "y[.., j, ..] = the i of the largest x[.., i, ..] with index[.., i, ..] = j, or -1 if there is "
      "none, for j < size along `dim`. Of equal ones it is the first; NaN is the largest. An index "
      "outside [0, size) ends the job.";
  op.min_inputs = op.max_inputs = 2;
  op.attributes = {{"dim", int64_t{0}, true}, {"size", int64_t{0}, true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"x"}));
    ZG_RETURN_IF_ERROR(CheckIndex(call, names, IndexSize::kSame));
    return PlacesOf(call, names);
  };
  op.sbp_signatures = OtherDimsSplit;
  op.not_differentiable = "positions have no gradient";
  op.flops = [](const ir::OpCall& call) { return call.inputs[0].shape.num_elements(); };
  return op;
}

}  // namespace

void RegisterScatterOps(ir::OpRegistry& registry) {
  registry.Register(ScatterLast());
  registry.Register(ScatterArgmax());
}

}  // namespace zg
