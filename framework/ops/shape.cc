// Ops that rearrange elements without computing: they take every dtype.
#include <fmt/format.h>

#include <algorithm>

#include "framework/ir/op_registry.h"
#include "framework/ops/custom_gradient.h"
#include "framework/ops/dim_ops.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;
using Ints = std::vector<int64_t>;
using Signatures = std::vector<ir::SbpSignature>;

const InputNames kX = {"x"};
const ir::SbpSignature kPartial = {{Sbp::P()}, {Sbp::P()}};

// Reshape: x's dims and y's dims in groups with equal numbers of elements. The first dim of a group
// follows from the others, so it may be split, and may be the ranks' batches together; unless one of
// the others is 0.
StatusOr<Types> ReshapeType(const ir::OpCall& call) {
  const Ints& from = call.attributes.Ints("from");
  const Ints& to = call.attributes.Ints("to");
  const Ints& sizes = call.attributes.Ints("sizes");
  const TensorType& x = call.inputs[0];
  const auto is_negative = [](int64_t count) { return count < 0; };
  const auto count = [](const Ints& groups) {
    int64_t sum = 0;
    for (const int64_t dims : groups) sum += dims;
    return sum;
  };
  if (from.size() != to.size() || std::any_of(from.begin(), from.end(), is_negative) ||
      std::any_of(to.begin(), to.end(), is_negative) || count(from) != x.shape.num_dims() ||
      count(to) != static_cast<int64_t>(sizes.size())) {
    return Rejected(call, kX, "its groups are not those of the dims");
  }
  std::vector<int64_t> dims;
  int x_dim = 0;
  for (size_t group = 0; group < from.size(); ++group) {
    int64_t elements = 1;
    for (int64_t i = 0; i < from[group]; ++i) elements *= x.shape.dim(x_dim++);
    const size_t first = dims.size();
    int64_t rest = 1;
    for (int64_t i = 1; i < to[group]; ++i) rest *= sizes[first + i];
    bool fits = rest > 0 && elements % rest == 0;
    if (to[group] == 0) fits = elements == 1;
    const bool is_given = rest == 0;
    if (is_given) fits = elements == 0 && sizes[first] >= 0;
    if (!fits) {
      return Rejected(
          call, kX,
          fmt::format("{} elements do not make dims of the sizes [{}]", elements,
                      fmt::join(sizes.begin() + first, sizes.begin() + first + to[group], ",")));
    }
    for (int64_t i = 0; i < to[group]; ++i) {
      dims.push_back(i == 0 && !is_given ? elements / rest : sizes[first + i]);
    }
  }
  const Shape shape(std::move(dims));
  if (!shape.IsValid()) return Rejected(call, kX, "got sizes that no tensor has");
  return Types{{x.dtype, shape}};
}

Signatures ReshapePlacements(const ir::OpCall& call) {
  const Ints& from = call.attributes.Ints("from");
  const Ints& to = call.attributes.Ints("to");
  const Ints& sizes = call.attributes.Ints("sizes");
  Signatures signatures;
  int x_dim = 0, y_dim = 0;
  for (size_t group = 0; group < from.size(); ++group) {
    if (from[group] > 0 && to[group] > 0 && sizes[y_dim] == -1) {
      signatures.push_back({{Sbp::S(x_dim)}, {Sbp::S(y_dim)}});
    }
    x_dim += static_cast<int>(from[group]);
    y_dim += static_cast<int>(to[group]);
  }
  signatures.push_back(kPartial);
  return signatures;
}

Status ReshapeGradient(ir::GradientContext& context) {
  if (!context.needs(0)) return Status::Ok();
  const ir::Attributes& attributes = context.node().attributes;
  Ints sizes = context.input(0)->type.shape.dims();
  int64_t dim = 0;
  for (const int64_t dims : attributes.Ints("from")) {
    const auto group = sizes.begin() + dim;
    const bool is_given = std::count(group + std::min<int64_t>(1, dims), group + dims, 0) > 0;
    if (dims > 0 && !is_given) sizes[dim] = -1;
    dim += dims;
  }
  context.set_input_gradient(
      0, context.builder().Op(
             "reshape", {context.output_gradient()},
             {{"from", attributes.Ints("to")}, {"to", attributes.Ints("from")}, {"sizes", sizes}}));
  return Status::Ok();
}

ir::OpDef Reshape() {
  ir::OpDef op;
  op.name = "reshape";
  op.traits.keeps_dtype = true;
  op.traits.kind = ir::OpKind::kView;
  op.traits.sinks_to_user = true;
  op.doc =
      "The elements of x, in their order, in other dims; shares its memory. Groups of from[g] dims "
      "of x become groups of to[g] dims of y, of these `sizes`; the first of each group (-1) "
      "follows from the rest.";
  op.attributes = {{"from", Ints{}, true}, {"to", Ints{}, true}, {"sizes", Ints{}, true}};
  op.infer_shape = ReshapeType;
  op.sbp_signatures = ReshapePlacements;
  op.gradient = ReshapeGradient;
  op.aliases = [](const ir::OpCall&) { return InsideInput(); };
  return op;
}

StatusOr<Types> PermuteType(const ir::OpCall& call) {
  const Ints& order = call.attributes.Ints("order");
  const TensorType& x = call.inputs[0];
  Ints sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool is_order = static_cast<int>(sorted.size()) == x.shape.num_dims();
  for (size_t i = 0; i < sorted.size(); ++i) is_order &= sorted[i] == static_cast<int64_t>(i);
  if (!is_order) {
    return Rejected(call, kX,
                    fmt::format("got order [{}], expected each of its {} dims once",
                                fmt::join(order, ","), x.shape.num_dims()));
  }
  Ints dims;
  for (const int64_t dim : order) dims.push_back(x.shape.dim(static_cast<int>(dim)));
  return Types{{x.dtype, Shape(std::move(dims))}};
}

ir::OpDef Permute() {
  ir::OpDef op;
  op.name = "permute";
  op.traits.keeps_dtype = true;
  op.doc = "Dim i of y is dim order[i] of x.";
  op.attributes = {{"order", Ints{}, true}};
  op.infer_shape = PermuteType;
  op.sbp_signatures = [](const ir::OpCall& call) {
    const Ints& order = call.attributes.Ints("order");
    Signatures signatures;
    for (size_t i = 0; i < order.size(); ++i) {
      signatures.push_back({{Sbp::S(static_cast<int>(order[i]))}, {Sbp::S(static_cast<int>(i))}});
    }
    signatures.push_back(kPartial);
    return signatures;
  };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    const Ints& order = context.node().attributes.Ints("order");
    Ints inverse(order.size());
    for (size_t i = 0; i < order.size(); ++i) inverse[order[i]] = static_cast<int64_t>(i);
    context.set_input_gradient(
        0, context.builder().Op("permute", {context.output_gradient()}, {{"order", inverse}}));
    return Status::Ok();
  };
  return op;
}

ir::OpDef StopGradient() {
  ir::OpDef op;
  op.name = "stop_gradient";
  op.traits.keeps_dtype = true;
  op.traits.kind = ir::OpKind::kView;
  op.traits.sinks_to_user = true;
  op.traits.stops_gradient = true;
  op.doc = "x, which backward takes for a constant; shares its memory.";
  op.infer_shape = [](const ir::OpCall& call) -> StatusOr<Types> { return Types{call.inputs[0]}; };
  op.sbp_signatures = [](const ir::OpCall& call) {
    Signatures signatures = SplitAnyDim(call);
    signatures.push_back(kPartial);
    return signatures;
  };
  op.not_differentiable = "backward ends here";
  op.aliases = [](const ir::OpCall&) { return InsideInput(); };
  return op;
}

}  // namespace

void RegisterShapeOps(ir::OpRegistry& registry) {
  registry.Register(Reshape());
  registry.Register(Permute());
  registry.Register(SliceOp());
  registry.Register(PadOp());
  registry.Register(ConcatOp());
  registry.Register(FlipOp());
  registry.Register(StopGradient());
  registry.Register(CustomGradientOp());
}

}  // namespace zg
