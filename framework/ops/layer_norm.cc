// Layer normalisation over the last dim (arXiv 1607.06450) and its gradient.
// Shapes: x, y (..., C); gamma, beta (C); mean, rstd (...) in f32: the mean and 1 / standard
// deviation of each row.
#include "framework/ir/op_registry.h"
#include "framework/ops/addend.h"
#include "framework/ops/formula_gradient.h"
#include "framework/ops/op_rules.h"
#include "framework/ops/summed_parts.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

const Sbp B = Sbp::B();
const Sbp P = Sbp::P();

// For second derivatives: those of mean and rstd for x.
void AddGradientsOfStatistics(ir::GradientContext& context) {
  if (!context.needs(0)) return;
  ir::Builder* const builder = &context.builder();
  const Term x = As(DType::kF32, {builder, context.input(0)});
  const double average = 1.0 / static_cast<double>(context.input(0)->type.shape.dim(-1));
  if (ir::Value* const dmean = context.output_gradient(1)) {
    const std::vector<int64_t> last = {x.value->type.shape.num_dims() - 1};
    AddToInputGradient(context, 0,
                       Append("expand", {builder, dmean},
                              {{"dims", last},
                               {"sizes", std::vector<int64_t>{x.value->type.shape.dim(-1)}},
                               {"factor", average}}));
  }
  if (ir::Value* const drstd = context.output_gradient(2)) {
    const Term mean = {builder, context.output(1)}, rstd = {builder, context.output(2)};
    const Term of_row = -average * (Term{builder, drstd} * (rstd * Square(rstd)));
    AddToInputGradient(context, 0, AsColumn(of_row) * (x - AsColumn(mean)));
  }
}

std::vector<Term> LayerNormGradFormula(const std::vector<Term>& in, const ir::Node& node) {
  const Term dy = in[0], x = in[1], gamma = in[2];
  const Term rstd = AsColumn(in[4]);
  const Term normed = (x - AsColumn(in[3])) * rstd;
  const Term e = dy * gamma;
  const Term dx = rstd * ((e - RowAverage(e)) - normed * RowAverage(e * normed));
  const Shape& channels = node.inputs[2]->type.shape;
  return {dx, SumTo(channels, dy * normed), SumTo(channels, dy)};
}

ir::OpDef LayerNorm() {
  const InputNames names = {"x", "gamma", "beta"};
  ir::OpDef op;
  op.name = "layer_norm";
  op.doc =
      "y = (x - mean) rstd gamma + beta with mean and rstd = 1 / sqrt(variance + epsilon) of each "
      "row, which are outputs 1 and 2; the variance is the biased one.";
  op.min_inputs = op.max_inputs = 3;
  op.num_outputs = 3;
  op.attributes = {{"epsilon", 1e-5}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const TensorType& x = call.inputs[0];
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
    if (x.shape.num_dims() < 1) return Rejected(call, names, "x has no dims");
    const Shape channels = {x.shape.dim(-1)};
    if (call.inputs[1].shape != channels || call.inputs[2].shape != channels) {
      return Rejected(call, names, "gamma and beta do not fit the last dim of x");
    }
    ZG_RETURN_IF_ERROR(CheckRange(call, "epsilon"));
    const TensorType row = {DType::kF32, WithoutLastDim(x.shape)};
    return Types{x, row, row};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    Signatures signatures;
    for (int dim = 0; dim < call.inputs[0].shape.num_dims() - 1; ++dim) {
      signatures.push_back({{Sbp::S(dim), B, B}, {Sbp::S(dim), Sbp::S(dim), Sbp::S(dim)}});
    }
    return signatures;
  };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0) && !context.needs(1) && !context.needs(2)) return Status::Ok();
    if (context.output_gradient() != nullptr) {
      const std::vector<ir::Value*> gradients = context.builder().Ops(
          "layer_norm_grad", {context.output_gradient(), context.input(0), context.input(1),
                              context.output(1), context.output(2)});
      for (int i = 0; i < 3; ++i) {
        if (context.needs(i)) context.set_input_gradient(i, gradients[i]);
      }
    }
    AddGradientsOfStatistics(context);
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) { return 8 * call.inputs[0].shape.num_elements(); };
  return op;
}

ir::OpDef LayerNormGrad() {
  const InputNames names = {"dy", "x", "gamma", "mean", "rstd"};
  ir::OpDef op;
  op.name = "layer_norm_grad";
  op.doc =
      "With n = (x - mean) rstd and e = dy gamma: dx = rstd (e - average(e) - n average(e n)), "
      "averages over the row; dgamma = sum over rows of dy n; dbeta = sum over rows of dy. With "
      "sums, output 3 is the sum over rows of output 0: the gradient of a bias in x.";
  op.min_inputs = op.max_inputs = 5;
  op.num_outputs = -1;
  op.attributes = {{"sums", false}};
  op.traits.sums_rows = true;
  op.traits.f32_inputs = {3, 4};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const TensorType& dy = call.inputs[0];
    const TensorType& gamma = call.inputs[2];
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"dy", "x", "gamma"}));
    if (dy.shape.num_dims() < 1 || dy != call.inputs[1]) {
      return Rejected(call, names, "dy and x are not alike");
    }
    if (gamma.shape != Shape{dy.shape.dim(-1)}) {
      return Rejected(call, names, "gamma does not fit the last dim of x");
    }
    const TensorType row = {DType::kF32, WithoutLastDim(dy.shape)};
    if (call.inputs[3] != row || call.inputs[4] != row) {
      return Rejected(call, names, "mean and rstd are not one f32 per row of x");
    }
    Types types = {dy, gamma, gamma};
    if (call.attributes.Bool("sums")) types.push_back(gamma);
    return types;
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    Signatures signatures;
    for (int dim = 0; dim < call.inputs[0].shape.num_dims() - 1; ++dim) {
      const Sbp split = Sbp::S(dim);
      signatures.push_back({{split, split, B, split, split}, {split, P, P}});
    }
    signatures.push_back({{P, B, B, B, B}, {P, P, P}});
    if (!call.attributes.Bool("sums")) return signatures;
    for (ir::SbpSignature& signature : signatures) signature.outputs.push_back(P);
    return signatures;
  };
  op.gradient = [rule = GradientOf(LayerNormGradFormula)](ir::GradientContext& context) -> Status {
    // Sums are added to nodes after their gradients.
    if (context.node().attributes.Bool("sums")) {
      ZG_RETURN_IF_ERROR(CheckOnlyFirstUsed(context));
    }
    return rule(context);
  };
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({0, 1}); };
  op.flops = [](const ir::OpCall& call) {
    return (call.attributes.Bool("sums") ? 16 : 15) * call.inputs[0].shape.num_elements();
  };
  return op;
}

}  // namespace

void RegisterLayerNormOps(ir::OpRegistry& registry) {
  registry.Register(LayerNorm());
  registry.Register(WithSummedParts(WithAddend(LayerNormGrad())));
}

}  // namespace zg
