// Batch normalisation (arXiv 1502.03167) by the statistics of one micro-batch, and its gradient.
// Shapes: x, y (N, C, ...); gamma, beta (C); mean, variance (C) in f32.
//
// The samples of a micro-batch cannot be split: each micro-batch has its own statistics, which
// makes results the same on any number of ranks.
#include "framework/ir/op_registry.h"
#include "framework/ops/formula_gradient.h"
#include "framework/ops/op_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

// A statistic (C) for broadcasting with x.
Term ForChannels(Term statistic, const Shape& x) {
  return WithLastDims(statistic, x.num_dims() - 2);
}

// The dims of x besides its channels, and their sizes.
struct SummedDims {
  std::vector<int64_t> dims, sizes;
  double count = 1.0;  // elements of a channel

  explicit SummedDims(const Shape& x) {
    for (int dim = 0; dim < x.num_dims(); ++dim) {
      if (dim == 1) continue;
      dims.push_back(dim);
      sizes.push_back(x.dim(dim));
      count *= static_cast<double>(x.dim(dim));
    }
  }
  Term Sum(Term x) const { return Append("sum", x, {{"dims", dims}}); }
  Term Expand(Term statistic, double factor) const {
    return Append("expand", statistic, {{"dims", dims}, {"sizes", sizes}, {"factor", factor}});
  }
};

// For second derivatives: those of mean and variance for x.
void AddGradientsOfStatistics(ir::GradientContext& context) {
  if (!context.needs(0)) return;
  ir::Builder* const builder = &context.builder();
  const Shape& shape = context.input(0)->type.shape;
  const SummedDims summed(shape);
  if (ir::Value* const dmean = context.output_gradient(1)) {
    AddToInputGradient(context, 0, summed.Expand({builder, dmean}, 1.0 / summed.count));
  }
  if (ir::Value* const dvariance = context.output_gradient(2)) {
    const Term x = As(DType::kF32, {builder, context.input(0)});
    const Term distance = x - ForChannels({builder, context.output(1)}, shape);
    AddToInputGradient(context, 0,
                       summed.Expand({builder, dvariance}, 2.0 / summed.count) * distance);
  }
}

std::vector<Term> BatchNormGradFormula(const std::vector<Term>& in, const ir::Node& node) {
  const Shape& shape = node.inputs[1]->type.shape;
  const SummedDims summed(shape);
  const Term dy = in[0];
  const Term rstd = Rsqrt(Shift(in[4], node.attributes.Float("epsilon")));
  const Term normed = (in[1] - ForChannels(in[3], shape)) * ForChannels(rstd, shape);
  const Term dgamma = summed.Sum(dy * normed), dbeta = summed.Sum(dy);
  const Term average =
      (1.0 / summed.count) * (ForChannels(dbeta, shape) + normed * ForChannels(dgamma, shape));
  return {ForChannels(in[2] * rstd, shape) * (dy - average), dgamma, dbeta};
}

ir::OpDef BatchNorm() {
  const InputNames names = {"x", "gamma", "beta"};
  ir::OpDef op;
  op.name = "batch_norm";
  op.doc =
      "y = (x - mean) / sqrt(variance + epsilon) gamma + beta, by channel, which is dim 1; outputs 1 "
      "and 2 are mean and variance, the biased one, over the other dims.";
  op.min_inputs = op.max_inputs = 3;
  op.num_outputs = 3;
  op.attributes = {{"epsilon", 1e-5}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const TensorType& x = call.inputs[0];
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
    if (x.shape.num_dims() < 2) {
      return Rejected(call, names, "x has no channels, expected the dims (samples, channels, ...)");
    }
    const Shape channels = {x.shape.dim(1)};
    if (call.inputs[1].shape != channels || call.inputs[2].shape != channels) {
      return Rejected(call, names, "gamma and beta do not fit the channels of x");
    }
    ZG_RETURN_IF_ERROR(CheckRange(call, "epsilon"));
    const TensorType statistics = {DType::kF32, channels};
    return Types{x, statistics, statistics};
  };
  op.sbp_signatures = [](const ir::OpCall&) {
    const Sbp of_x = Sbp::S(1);
    const Sbp of_channels = Sbp::S(0);
    return Signatures{{{of_x, of_channels, of_channels}, {of_x, of_channels, of_channels}}};
  };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0) && !context.needs(1) && !context.needs(2)) return Status::Ok();
    if (context.output_gradient() != nullptr) {
      const std::vector<ir::Value*> gradients =
          context.builder().Ops("batch_norm_grad",
                                {context.output_gradient(), context.input(0), context.input(1),
                                 context.output(1), context.output(2)},
                                context.node().attributes);
      for (int i = 0; i < 3; ++i) {
        if (context.needs(i)) context.set_input_gradient(i, gradients[i]);
      }
    }
    AddGradientsOfStatistics(context);
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) { return 7 * call.inputs[0].shape.num_elements(); };
  return op;
}

ir::OpDef BatchNormGrad() {
  const InputNames names = {"dy", "x", "gamma", "mean", "variance"};
  ir::OpDef op;
  op.name = "batch_norm_grad";
  op.traits.f32_inputs = {3, 4};
  op.doc =
      "With rstd = 1 / sqrt(variance + epsilon) and n = (x - mean) rstd: dgamma = sum of dy n; "
      "dbeta = sum of dy; dx = gamma rstd (dy - (dbeta + n dgamma) / count), by channel.";
  op.min_inputs = op.max_inputs = 5;
  op.num_outputs = 3;
  op.attributes = {{"epsilon", 1e-5}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const TensorType& x = call.inputs[1];
    const TensorType& gamma = call.inputs[2];
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"dy", "x", "gamma"}));
    if (x.shape.num_dims() < 2 || call.inputs[0] != x) {
      return Rejected(call, names, "dy and x are not alike");
    }
    if (gamma.shape != Shape{x.shape.dim(1)}) {
      return Rejected(call, names, "gamma does not fit the channels of x");
    }
    const TensorType statistics = {DType::kF32, gamma.shape};
    if (call.inputs[3] != statistics || call.inputs[4] != statistics) {
      return Rejected(call, names, "mean and variance are not one f32 per channel of x");
    }
    ZG_RETURN_IF_ERROR(CheckRange(call, "epsilon"));
    return Types{x, gamma, gamma};
  };
  op.sbp_signatures = [](const ir::OpCall&) {
    const Sbp of_x = Sbp::S(1);
    const Sbp s = Sbp::S(0);
    const Sbp B = Sbp::B();
    const Sbp P = Sbp::P();
    return Signatures{{{of_x, of_x, s, s, s}, {of_x, s, s}}, {{P, B, B, B, B}, {P, P, P}}};
  };
  op.gradient = GradientOf(BatchNormGradFormula);
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({0, 1}); };
  op.flops = [](const ir::OpCall& call) { return 10 * call.inputs[1].shape.num_elements(); };
  return op;
}

}  // namespace

void RegisterBatchNormOps(ir::OpRegistry& registry) {
  registry.Register(BatchNorm());
  registry.Register(BatchNormGrad());
}

}  // namespace zg
