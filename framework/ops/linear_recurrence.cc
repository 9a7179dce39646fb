// First-order linear recurrences along a dim, h_i = decay_i h_(i-1) + x_i, and their gradients: the
// scan of state space models (Gu and Dao, arXiv 2312.00752, equation 2a), of gated linear recurrent
// layers (arXiv 2402.19427, 2410.01201), exponential averages, discounted returns.
// As a linear map of x it is the inverse of I - D S, S moving each element to the next one and D
// having the decays on its diagonal. The gradient's map is the transpose, the inverse of I - S' D:
// it runs backwards, and each step has the decay of the element that it leaves.
#include <fmt/format.h>

#include <algorithm>

#include "framework/ir/op_registry.h"
#include "framework/ops/formula_gradient.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

std::vector<ir::AttributeDef> Attributes() {
  return {{"dim", int64_t{0}, true}, {"from_end", false}, {"leaving", false}};
}

ir::Attributes Transposed(const ir::Attributes& forward) {
  return {{"dim", forward.Int("dim")},
          {"from_end", !forward.Bool("from_end")},
          {"leaving", !forward.Bool("leaving")}};
}

Status CheckCall(const ir::OpCall& call, const InputNames& names) {
  ZG_RETURN_IF_ERROR(CheckAllAlike(call, names));
  const int64_t dim = call.attributes.Int("dim");
  if (dim >= 0 && dim < call.inputs[0].shape.num_dims()) return Status::Ok();
  return Rejected(call, names, fmt::format("got dim {}, expected one of its dims", dim));
}

ir::OpDef LinearRecurrence() {
  const InputNames names = {"decay", "x"};
  ir::OpDef op;
  op.name = "linear_recurrence";
  op.traits.computes_in_f32 = true;
  op.doc =
      "h_i = decay_i h_(i-1) + x_i along `dim`, from h_(-1) = 0 on; with `leaving` "
      "h_i = decay_(i-1) h_(i-1) + x_i. With `from_end` the elements are numbered from the last "
      "one. One after the other, in f32.";
  op.min_inputs = op.max_inputs = 2;
  op.attributes = Attributes();
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckCall(call, names));
    return Types{call.inputs[0]};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    Signatures signatures = SplitOtherDims(call);
    signatures.push_back({{Sbp::B(), Sbp::P()}, {Sbp::P()}});
    return signatures;
  };
  op.gradient = [](ir::GradientContext& context) {
    ir::Builder& builder = context.builder();
    const ir::Attributes& forward = context.node().attributes;
    ir::Value* const decay = context.input(0);
    ir::Value* const dh = context.output_gradient();
    if (context.needs(0)) {
      const std::vector<ir::Value*> gradients =
          builder.Ops("linear_recurrence_grad", {dh, decay, context.output(0)}, forward);
      for (int i = 0; i < 2; ++i) {
        if (context.needs(i)) context.set_input_gradient(i, gradients[i]);
      }
    } else if (context.needs(1)) {
      context.set_input_gradient(1,
                                 builder.Op("linear_recurrence", {decay, dh}, Transposed(forward)));
    }
    return Status::Ok();
  };
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({0, 1}); };
  op.flops = [](const ir::OpCall& call) { return 2 * call.inputs[0].shape.num_elements(); };
  return op;
}

// y_i = x_(i-1) along `dim`, or x_(i+1), and 0 where there is none.
Term FromNeighbour(Term x, int64_t dim, bool next) {
  if (x.value == nullptr) return x;
  const int64_t size = x.value->type.shape.dim(static_cast<int>(dim));
  const int64_t skipped = std::min<int64_t>(1, size);
  const Term others =
      Append("slice", x, {{"dim", dim}, {"start", next ? skipped : 0}, {"size", size - skipped}});
  return Append("pad", others,
                {{"dim", dim}, {"before", next ? 0 : skipped}, {"after", next ? skipped : 0}});
}

std::vector<Term> GradFormula(const std::vector<Term>& in, const ir::Node& node) {
  const Term dh = in[0], decay = in[1], h = in[2];
  const int64_t dim = node.attributes.Int("dim");
  const bool from_end = node.attributes.Bool("from_end");
  const Term dx = Append("linear_recurrence", decay, dh, Transposed(node.attributes));
  const Term ddecay = node.attributes.Bool("leaving") ? h * FromNeighbour(dx, dim, !from_end)
                                                      : dx * FromNeighbour(h, dim, from_end);
  return {ddecay, dx};
}

ir::OpDef LinearRecurrenceGrad() {
  const InputNames names = {"dh", "decay", "h"};
  ir::OpDef op;
  op.name = "linear_recurrence_grad";
  op.traits.computes_in_f32 = true;
  op.doc =
      "dx_i = dh_i + decay_(i+1) dx_(i+1) and ddecay_i = dx_i h_(i-1); with `leaving` "
      "dx_i = dh_i + decay_i dx_(i+1) and ddecay_i = h_i dx_(i+1). Outputs: ddecay, dx.";
  op.min_inputs = op.max_inputs = 3;
  op.num_outputs = 2;
  op.attributes = Attributes();
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckCall(call, names));
    return Types{call.inputs[0], call.inputs[0]};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    Signatures signatures = SplitOtherDims(call);
    signatures.push_back({{Sbp::P(), Sbp::B(), Sbp::B()}, {Sbp::P(), Sbp::P()}});
    return signatures;
  };
  op.gradient = GradientOf(GradFormula);
  op.aliases = [](const ir::OpCall&) {
    std::vector<ir::AliasRule> rules = InPlaceOf({1, 2, 0});
    rules.back().output = 1;
    return rules;
  };
  op.flops = [](const ir::OpCall& call) { return 3 * call.inputs[0].shape.num_elements(); };
  return op;
}

}  // namespace

void RegisterLinearRecurrenceOps(ir::OpRegistry& registry) {
  registry.Register(LinearRecurrence());
  registry.Register(LinearRecurrenceGrad());
}

}  // namespace zg
