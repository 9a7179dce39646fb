// Root mean square normalisation over the last dim (Zhang and Sennrich, arXiv 1910.07467, equation
// 4), as torch.nn.RMSNorm has it, and its gradient.
// Shapes: x, y (..., C); weight (C); rrms (...) in f32: 1 / root mean square of each row.
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

ir::OpDef RmsNorm() {
  const InputNames names = {"x", "weight"};
  ir::OpDef op;
  op.name = "rms_norm";
  op.doc =
      "y = x rrms weight with rrms = 1 / sqrt(average(x^2) + epsilon) of each row, output 1. "
      "(PyTorch's default epsilon is that of the dtype, 1.2e-7 in f32.)";
  op.min_inputs = op.max_inputs = 2;
  op.num_outputs = 2;
  op.attributes = {{"epsilon", 1e-6}};
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const TensorType& x = call.inputs[0];
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
    if (x.shape.num_dims() < 1) return Rejected(call, names, "x has no dims");
    if (call.inputs[1].shape != Shape{x.shape.dim(-1)}) {
      return Rejected(call, names, "weight does not fit the last dim of x");
    }
    ZG_RETURN_IF_ERROR(CheckRange(call, "epsilon"));
    return Types{x, {DType::kF32, WithoutLastDim(x.shape)}};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    Signatures signatures;
    for (int dim = 0; dim < call.inputs[0].shape.num_dims() - 1; ++dim) {
      signatures.push_back({{Sbp::S(dim), B}, {Sbp::S(dim), Sbp::S(dim)}});
    }
    return signatures;
  };
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0) && !context.needs(1)) return Status::Ok();
    ir::Builder& builder = context.builder();
    if (context.output_gradient() != nullptr) {
      const std::vector<ir::Value*> gradients = builder.Ops(
          "rms_norm_grad",
          {context.output_gradient(), context.input(0), context.input(1), context.output(1)});
      for (int i = 0; i < 2; ++i) {
        if (context.needs(i)) context.set_input_gradient(i, gradients[i]);
      }
    }
    if (context.needs(0) && context.output_gradient(1) != nullptr) {  // for second derivatives
      const Term x = As(DType::kF32, {&builder, context.input(0)});
      const Term rrms = {&builder, context.output(1)};
      const Term drrms = {&builder, context.output_gradient(1)};
      const double factor = -1.0 / static_cast<double>(x.value->type.shape.dim(-1));
      AddToInputGradient(context, 0, AsColumn(factor * (drrms * (rrms * Square(rrms)))) * x);
    }
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) { return 4 * call.inputs[0].shape.num_elements(); };
  return op;
}

std::vector<Term> RmsNormGradFormula(const std::vector<Term>& in, const ir::Node& node) {
  const Term dy = in[0], x = in[1], weight = in[2];
  const Term rrms = AsColumn(in[3]);
  const Term normed = x * rrms;
  const Term e = dy * weight;
  const Term dx = rrms * (e - normed * RowAverage(e * normed));
  return {dx, SumTo(node.inputs[2]->type.shape, dy * normed)};
}

ir::OpDef RmsNormGrad() {
  const InputNames names = {"dy", "x", "weight", "rrms"};
  ir::OpDef op;
  op.name = "rms_norm_grad";
  op.traits.f32_inputs = {3};
  op.doc =
      "With n = x rrms and e = dy weight: dx = rrms (e - n average(e n)), the average over the "
      "row; "
      "dweight = sum over rows of dy n.";
  op.min_inputs = op.max_inputs = 4;
  op.num_outputs = 2;
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    const TensorType& dy = call.inputs[0];
    const TensorType& weight = call.inputs[2];
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names, {"dy", "x", "weight"}));
    if (dy.shape.num_dims() < 1 || dy != call.inputs[1]) {
      return Rejected(call, names, "dy and x are not alike");
    }
    if (weight.shape != Shape{dy.shape.dim(-1)}) {
      return Rejected(call, names, "weight does not fit the last dim of x");
    }
    if (call.inputs[3] != TensorType{DType::kF32, WithoutLastDim(dy.shape)}) {
      return Rejected(call, names, "rrms is not one f32 per row of x");
    }
    return Types{dy, weight};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    Signatures signatures;
    for (int dim = 0; dim < call.inputs[0].shape.num_dims() - 1; ++dim) {
      const Sbp split = Sbp::S(dim);
      signatures.push_back({{split, split, B, split}, {split, P}});
    }
    signatures.push_back({{P, B, B, B}, {P, P}});
    return signatures;
  };
  op.gradient = GradientOf(RmsNormGradFormula);
  op.aliases = [](const ir::OpCall&) { return InPlaceOf({0, 1}); };
  op.flops = [](const ir::OpCall& call) { return 10 * call.inputs[0].shape.num_elements(); };
  return op;
}

}  // namespace

void RegisterRmsNormOps(ir::OpRegistry& registry) {
  registry.Register(RmsNorm());
  registry.Register(WithSummedParts(WithAddend(RmsNormGrad())));
}

}  // namespace zg
