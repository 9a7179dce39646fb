// Positions along a dim, and elements at such positions.
#include <fmt/format.h>

#include "framework/ir/op_registry.h"
#include "framework/ops/index_rules.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

const Sbp B = Sbp::B();
const Sbp P = Sbp::P();

ir::OpDef Iota() {
  ir::OpDef op;
  op.name = "iota";
  op.traits.kind = ir::OpKind::kConstant;
  op.traits.sinks_to_user = true;
  op.doc = "y[i] = start + i step, for i < size.";
  op.min_inputs = op.max_inputs = 0;
  op.attributes = {
      {"size", int64_t{0}, true}, {"start", int64_t{0}, false}, {"step", int64_t{1}, false}};
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> {
    const Shape shape{call.attributes.Int("size")};
    if (!shape.IsValid()) {
      return InvalidArgument("iota: got size {}, expected one that a tensor has",
                             call.attributes.Int("size"));
    }
    return Types{{DType::kI64, shape}};
  };
  op.not_differentiable = "a source has no inputs";
  return op;
}

// OtherDimsSplit, and terms of sums beside a whole index.
Signatures OtherDimsSplitOrPartial(const ir::OpCall& call) {
  Signatures signatures = OtherDimsSplit(call);
  if (IsFloat(call.inputs[0].dtype)) signatures.push_back({{P, B}, {P}});
  return signatures;
}

ir::OpDef Gather() {
  const InputNames names = {"x", "index"};
  ir::OpDef op;
  op.name = "gather";
  op.traits.keeps_dtype = true;
  op.doc =
      "y[.., i, ..] = x[.., index[.., i, ..], ..] along `dim`; the index has the shape of y. One "
      "outside [0, size of the dim) ends the job.";
  op.min_inputs = op.max_inputs = 2;
  op.attributes = {{"dim", int64_t{0}, true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckIndex(call, names, IndexSize::kAny));
    return Types{{call.inputs[0].dtype, call.inputs[1].shape}};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    const int64_t dim = call.attributes.Int("dim");
    Signatures signatures = OtherDimsSplitOrPartial(call);
    const Sbp split = Sbp::S(static_cast<int>(dim));
    signatures.push_back({{B, split}, {split}});
    return signatures;
  };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    const int64_t dim = context.node().attributes.Int("dim");
    const int64_t size = context.input(0)->type.shape.dim(static_cast<int>(dim));
    context.set_input_gradient(
        0, context.builder().Op("gather_grad", {context.output_gradient(), context.input(1)},
                                {{"dim", dim}, {"size", size}}));
    return Status::Ok();
  };
  return op;
}

ir::OpDef GatherGrad() {
  const InputNames names = {"dy", "index"};
  ir::OpDef op;
  op.name = "gather_grad";
  op.doc =
      "dx[.., j, ..] = the sum of dy[.., i, ..] over the i with index[.., i, ..] = j, in ascending "
      "order and f32, for j < size along `dim`.";
  op.min_inputs = op.max_inputs = 2;
  op.attributes = {{"dim", int64_t{0}, true}, {"size", int64_t{0}, true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"dy"}));
    ZG_RETURN_IF_ERROR(CheckIndex(call, names, IndexSize::kSame));
    TensorType type = call.inputs[0];
    const int64_t size = call.attributes.Int("size");
    type.shape.set_dim(static_cast<int>(call.attributes.Int("dim")), size);
    if (size >= 0 && type.shape.IsValid()) return Types{type};
    return Rejected(call, names, fmt::format("got size {}, expected one that a tensor has", size));
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    const int64_t dim = call.attributes.Int("dim");
    Signatures signatures = OtherDimsSplitOrPartial(call);
    const Sbp split = Sbp::S(static_cast<int>(dim));
    signatures.push_back({{split, split}, {P}});
    return signatures;
  };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    context.set_input_gradient(
        0, context.builder().Op("gather", {context.output_gradient(), context.input(1)},
                                {{"dim", context.node().attributes.Int("dim")}}));
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) { return call.inputs[0].shape.num_elements(); };
  return op;
}

}  // namespace

void RegisterIndexingOps(ir::OpRegistry& registry) {
  registry.Register(Iota());
  registry.Register(Gather());
  registry.Register(GatherGrad());
}

}  // namespace zg
