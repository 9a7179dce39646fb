// Dropout and its gradient. The mask is a function of (seed, step, micro-batch, stream, element
// index), so it is never stored: the gradient draws it again, and so does recomputation. With an
// operand `part` a call has some of the equal parts of x along `dim` (kernels/parted_dim.h), and draws
// the mask of the whole for them.
#include <fmt/format.h>

#include "framework/ir/op_registry.h"
#include "framework/ir/parts_context.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

ir::OpDef Masked(std::string name, std::string doc, InputNames names) {
  ir::OpDef op;
  op.name = std::move(name);
  op.traits.is_random = true;
  op.doc = std::move(doc);
  op.max_inputs = 2;
  op.attributes = {{"probability", 0.5, true},
                   {"stream", int64_t{0}, true},
                   {"dim", int64_t{0}},
                   {"parts", int64_t{1}}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<std::vector<TensorType>> {
    ZG_RETURN_IF_ERROR(CheckRange(call, "probability", 1.0));
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {names[0]}));
    const Shape& x = call.inputs[0].shape;
    const int64_t dim = call.attributes.Int("dim");
    if (call.inputs.size() == 2 && (dim < 0 || dim >= x.num_dims())) {
      return Rejected(call, names, fmt::format("got dim {}, expected one of its dims", dim));
    }
    ZG_RETURN_IF_ERROR(
        CheckPart(call, names, 1, call.inputs.size() == 2 ? x.dim(static_cast<int>(dim)) : 1));
    return std::vector<TensorType>{call.inputs[0]};
  };
  // A rank's part along dim 0 is a micro-batch with its own mask; other cuts would change the
  // element index, except for parts that know their index.
  op.sbp_signatures = [](const ir::OpCall& call) {
    std::vector<ir::SbpSignature> signatures;
    if (call.inputs[0].shape.num_dims() == 0) return signatures;
    signatures.push_back({{Sbp::S(0)}, {Sbp::S(0)}});
    if (call.inputs.size() == 1) return signatures;
    const Sbp split = Sbp::S(static_cast<int>(call.attributes.Int("dim")));
    signatures = {{{split, Sbp::S(0)}, {split}}};
    if (split != Sbp::S(0)) signatures.push_back({{Sbp::S(0), Sbp::B()}, {Sbp::S(0)}});
    return signatures;
  };
  op.in_parts = [](ir::PartsContext& context) {
    const ir::Node& node = context.node();
    const Sbp sbp = context.input_sbp(0);
    if (node.inputs.size() == 2 || !sbp.is_split() || sbp.groups() > 1) return Status::Ok();
    ir::Attributes attributes = context.WithParts();
    attributes.Set("dim", int64_t{sbp.dim()});
    context.set_output(0, context.builder().Op(node.op->name, {node.inputs[0], context.Part()},
                                               std::move(attributes)));
    return Status::Ok();
  };
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({0}); };
  op.flops = [](const ir::OpCall& call) { return call.inputs[0].shape.num_elements(); };
  return op;
}

// For both ops: each is linear, with the same mask.
Status AppendGradient(ir::GradientContext& context) {
  if (!context.needs(0)) return Status::Ok();
  std::vector<ir::Value*> inputs = {context.output_gradient()};
  if (context.num_inputs() == 2) inputs.push_back(context.input(1));
  context.set_input_gradient(
      0, context.builder().Op("dropout_grad", inputs, context.node().attributes));
  return Status::Ok();
}

ir::OpDef Dropout() {
  ir::OpDef op =
      Masked("dropout",
             "y = mask x / (1 - probability), where mask is 0 with that probability and else 1. "
             "Nodes with different `stream`s draw different masks.",
             {"x", "part"});
  op.gradient = AppendGradient;
  return op;
}

ir::OpDef DropoutGrad() {
  ir::OpDef op = Masked("dropout_grad", "dx = mask dy / (1 - probability), with dropout's mask.",
                        {"dy", "part"});
  op.gradient = AppendGradient;
  return op;
}

}  // namespace

void RegisterDropoutOps(ir::OpRegistry& registry) {
  registry.Register(Dropout());
  registry.Register(DropoutGrad());
}

}  // namespace zg
