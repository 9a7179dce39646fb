// Adding a smaller tensor to every slice of a larger one, and the sum that is its gradient.
// Shapes: x (L..., R...), r (R...): r is added for every index of the leading dims L.
#include <algorithm>

#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

const Sbp B = Sbp::B();
const Sbp P = Sbp::P();

bool EndsWith(const Shape& shape, const Shape& end) {
  return shape.num_dims() >= end.num_dims() &&
         std::equal(end.dims().rbegin(), end.dims().rend(), shape.dims().rbegin());
}

ir::OpDef AddBroadcast() {
  const InputNames names = {"x", "r"};
  ir::OpDef op;
  op.name = "add_broadcast";
  op.doc = "y[l..,r..] = x[l..,r..] + r[r..].";
  op.min_inputs = op.max_inputs = 2;
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
    if (!EndsWith(call.inputs[0].shape, call.inputs[1].shape)) {
      return Rejected(call, names, "r does not fit the last dims of x");
    }
    return Types{call.inputs[0]};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    const int num_dims = call.inputs[0].shape.num_dims();
    const int leading = num_dims - call.inputs[1].shape.num_dims();
    Signatures signatures;
    for (int dim = 0; dim < num_dims; ++dim) {
      const Sbp r = dim < leading ? B : Sbp::S(dim - leading);
      signatures.push_back({{Sbp::S(dim), r}, {Sbp::S(dim)}});
    }
    signatures.push_back({{P, P}, {P}});
    return signatures;
  };
  op.gradient = [](ir::GradientContext& context) {
    ir::Value* dy = context.output_gradient();
    if (context.needs(0)) context.set_input_gradient(0, dy);
    if (context.needs(1) && context.input(1)->type == context.input(0)->type) {
      // No leading dims. The batch may be among the dims, so that their sizes are not final.
      context.set_input_gradient(1, dy);
    } else if (context.needs(1)) {
      const Shape& shape = context.input(1)->type.shape;
      context.set_input_gradient(1, context.builder().Op("sum_leading", {dy}, {{"shape", shape}}));
    }
    return Status::Ok();
  };
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({0}); };
  op.flops = [](const ir::OpCall& call) { return call.inputs[0].shape.num_elements(); };
  return op;
}

ir::OpDef SumLeading() {
  const InputNames names = {"x"};
  ir::OpDef op;
  op.name = "sum_leading";
  op.doc = "y[r..] = sum over l.. of x[l..,r..]; `shape` is that of y.";
  op.attributes = {{"shape", Shape{}, true}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const Shape& shape = call.attributes.Shape("shape");
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
    if (!EndsWith(call.inputs[0].shape, shape)) {
      return Rejected(call, names, "x does not end with the dims " + shape.ToString());
    }
    return Types{{call.inputs[0].dtype, shape}};
  };
  // No split of a dim that stays: `shape` is the whole one.
  op.sbp_signatures = [](const ir::OpCall& call) {
    const int leading = call.inputs[0].shape.num_dims() - call.attributes.Shape("shape").num_dims();
    Signatures signatures;
    for (int dim = 0; dim < leading; ++dim) signatures.push_back({{Sbp::S(dim)}, {P}});
    signatures.push_back({{P}, {P}});
    return signatures;
  };
  op.not_differentiable = "it is made by the gradient of add_broadcast only";
  op.flops = [](const ir::OpCall& call) { return call.inputs[0].shape.num_elements(); };
  return op;
}

}  // namespace

void RegisterBroadcastOps(ir::OpRegistry& registry) {
  registry.Register(AddBroadcast());
  registry.Register(SumLeading());
}

}  // namespace zg
