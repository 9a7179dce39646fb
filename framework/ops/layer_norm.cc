// Layer normalisation over the last dim (arXiv 1607.06450) and its gradient.
// Shapes: x, y (..., C); gamma, beta (C); mean, rstd (...) in f32: the mean and 1 / standard
// deviation of each row.
#include "framework/ir/op_registry.h"
#include "framework/ops/addend.h"
#include "framework/ops/op_rules.h"
#include "framework/ops/summed_parts.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

const Sbp B = Sbp::B();
const Sbp P = Sbp::P();

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
    ZG_RETURN_IF_ERROR(CheckOnlyFirstOutputUsed(context));
    if (!context.needs(0) && !context.needs(1) && !context.needs(2)) return Status::Ok();
    const std::vector<ir::Value*> gradients = context.builder().Ops(
        "layer_norm_grad", {context.output_gradient(), context.input(0), context.input(1),
                            context.output(1), context.output(2)});
    for (int i = 0; i < 3; ++i) {
      if (context.needs(i)) context.set_input_gradient(i, gradients[i]);
    }
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
  op.not_differentiable = kNoSecondDerivative;
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
