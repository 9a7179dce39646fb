// Convolutions of images and their gradients, each of which is the gradient of the others.
// Shapes: N samples, C channels, O output channels, G groups; x (N, C, H, W), weight (O, C/G, KH, KW),
// bias (O), y (N, O, OH, OW) with OH = (H + 2 padding - dilation (KH - 1) - 1) / stride + 1.
#include <fmt/format.h>

#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"
#include "framework/ops/window_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;
using Signatures = std::vector<ir::SbpSignature>;

const Sbp B = Sbp::B();
const Sbp P = Sbp::P();

const InputNames kConvNames = {"x", "weight", "bias"};
const InputNames kGradInputNames = {"dy", "weight"};
const InputNames kGradWeightNames = {"dy", "x"};

std::vector<ir::AttributeDef> WindowAttributes() {
  return {{"stride", std::vector<int64_t>{1, 1}},
          {"padding", std::vector<int64_t>{0, 0}},
          {"dilation", std::vector<int64_t>{1, 1}},
          {"groups", int64_t{1}}};
}

ir::Attributes WindowOf(const ir::Attributes& from) {
  return {{"stride", from.Ints("stride")},
          {"padding", from.Ints("padding")},
          {"dilation", from.Ints("dilation")},
          {"groups", from.Int("groups")}};
}

// The height and width of y.
StatusOr<std::vector<int64_t>> OutputSizes(const ir::OpCall& call, const InputNames& names,
                                           const Shape& x, const Shape& weight) {
  ZG_RETURN_IF_ERROR(CheckTwoNumbers(call, "stride", 1));
  ZG_RETURN_IF_ERROR(CheckTwoNumbers(call, "padding", 0));
  ZG_RETURN_IF_ERROR(CheckTwoNumbers(call, "dilation", 1));
  const int64_t groups = call.attributes.Int("groups");
  if (x.dim(1) != SizeProduct(weight.dim(1), groups) || weight.dim(0) % groups != 0) {
    return Rejected(
        call, names,
        fmt::format("got {} channels, {} output channels, weights for {} and {} groups, "
                    "expected groups that divide both, and weights for the channels of one",
                    x.dim(1), weight.dim(0), weight.dim(1), groups));
  }
  std::vector<int64_t> sizes;
  for (int i = 0; i < 2; ++i) {
    ZG_ASSIGN_OR_RETURN(const int64_t size,
                        CountWindows(call, names, i, x.dim(2 + i), weight.dim(2 + i)));
    sizes.push_back(size);
  }
  return sizes;
}

Status CheckOperands(const ir::OpCall& call, const InputNames& names) {
  ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
  for (int i = 0; i < 2; ++i) ZG_RETURN_IF_ERROR(CheckImages(call, names, i));
  if (call.attributes.Int("groups") < 1) return Rejected(call, names, "groups are fewer than one");
  return Status::Ok();
}

StatusOr<Types> ConvType(const ir::OpCall& call) {
  ZG_RETURN_IF_ERROR(CheckOperands(call, kConvNames));
  const Shape& x = call.inputs[0].shape;
  const Shape& weight = call.inputs[1].shape;
  if (call.inputs.size() == 3 && call.inputs[2].shape != Shape{weight.dim(0)}) {
    return Rejected(call, kConvNames, "bias does not fit the output channels of weight");
  }
  ZG_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, OutputSizes(call, kConvNames, x, weight));
  return Types{{call.inputs[0].dtype, Shape{x.dim(0), weight.dim(0), sizes[0], sizes[1]}}};
}

// Error unless dy has the shape of the convolution of x and weight.
Status CheckOutput(const ir::OpCall& call, const InputNames& names, const Shape& x,
                   const Shape& weight) {
  const Shape& dy = call.inputs[0].shape;
  ZG_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, OutputSizes(call, names, x, weight));
  const Shape expected = {x.dim(0), weight.dim(0), sizes[0], sizes[1]};
  if (dy == expected) return Status::Ok();
  return Rejected(call, names, fmt::format("dy is not of the shape {}", expected.ToString()));
}

StatusOr<Types> GradInputType(const ir::OpCall& call) {
  ZG_RETURN_IF_ERROR(CheckOperands(call, kGradInputNames));
  ZG_RETURN_IF_ERROR(CheckTwoNumbers(call, "size", 1));
  const Shape& weight = call.inputs[1].shape;
  const std::vector<int64_t>& size = call.attributes.Ints("size");
  const Shape x = {call.inputs[0].shape.dim(0),
                   SizeProduct(weight.dim(1), call.attributes.Int("groups")), size[0], size[1]};
  ZG_RETURN_IF_ERROR(CheckOutput(call, kGradInputNames, x, weight));
  return Types{{call.inputs[0].dtype, x}};
}

StatusOr<Types> GradWeightType(const ir::OpCall& call) {
  ZG_RETURN_IF_ERROR(CheckOperands(call, kGradWeightNames));
  ZG_RETURN_IF_ERROR(CheckTwoNumbers(call, "kernel", 1));
  const Shape& dy = call.inputs[0].shape;
  const Shape& x = call.inputs[1].shape;
  const std::vector<int64_t>& kernel = call.attributes.Ints("kernel");
  const int64_t groups = call.attributes.Int("groups");
  const Shape weight = {dy.dim(1), x.dim(1) / groups, kernel[0], kernel[1]};
  ZG_RETURN_IF_ERROR(CheckOutput(call, kGradWeightNames, x, weight));
  return Types{{call.inputs[0].dtype, weight}};
}

// Every element of y is a sum of as many products as a row of weight has elements.
int64_t ProductFlops(const Shape& y, const Shape& weight) {
  return 2 * y.num_elements() * weight.dim(1) * weight.dim(2) * weight.dim(3);
}

ir::Value* Conv(ir::Builder& builder, ir::Value* x, ir::Value* weight, const ir::Attributes& like) {
  return builder.Op("conv2d", {x, weight}, WindowOf(like));
}

ir::Value* GradInput(ir::Builder& builder, ir::Value* dy, ir::Value* weight, const Shape& x,
                     const ir::Attributes& like) {
  ir::Attributes attributes = WindowOf(like);
  attributes.Set("size", std::vector<int64_t>{x.dim(2), x.dim(3)});
  return builder.Op("conv2d_grad_input", {dy, weight}, std::move(attributes));
}

ir::Value* GradWeight(ir::Builder& builder, ir::Value* dy, ir::Value* x, const Shape& weight,
                      const ir::Attributes& like) {
  ir::Attributes attributes = WindowOf(like);
  attributes.Set("kernel", std::vector<int64_t>{weight.dim(2), weight.dim(3)});
  return builder.Op("conv2d_grad_weight", {dy, x}, std::move(attributes));
}

ir::OpDef Conv2d() {
  ir::OpDef op;
  op.name = "conv2d";
  op.doc =
      "y[n,o,i,j] = bias[o] + sum over c, k, l of weight[o,c,k,l] x[n,c,s i + d k - p,s j + d l - p], "
      "where x is 0 outside; c are the channels of the group of o. bias is optional.";
  op.min_inputs = 2;
  op.max_inputs = 3;
  op.attributes = WindowAttributes();
  op.infer_shape = ConvType;
  op.sbp_signatures = [](const ir::OpCall& call) {
    Signatures signatures;
    const auto add = [&](Sbp x, Sbp weight, Sbp bias, Sbp y) {
      signatures.push_back({{x, weight}, {y}});
      if (call.inputs.size() == 3) signatures.back().inputs.push_back(bias);
    };
    add(Sbp::S(0), B, B, Sbp::S(0));
    add(P, B, P, P);
    add(B, P, P, P);
    return signatures;
  };
  op.gradient = [](ir::GradientContext& context) {
    ir::Builder& builder = context.builder();
    const ir::Attributes& attributes = context.node().attributes;
    ir::Value* const x = context.input(0);
    ir::Value* const weight = context.input(1);
    ir::Value* const dy = context.output_gradient();
    if (context.needs(0)) {
      context.set_input_gradient(0, GradInput(builder, dy, weight, x->type.shape, attributes));
    }
    if (context.needs(1)) {
      context.set_input_gradient(1, GradWeight(builder, dy, x, weight->type.shape, attributes));
    }
    if (context.num_inputs() == 3 && context.needs(2)) {
      context.set_input_gradient(
          2, builder.Op("sum", {dy}, {{"dims", std::vector<int64_t>{0, 2, 3}}}));
    }
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) {
    const Shape y = (*ConvType(call))[0].shape;
    return ProductFlops(y, call.inputs[1].shape) + (call.inputs.size() == 3 ? y.num_elements() : 0);
  };
  return op;
}

ir::OpDef Conv2dGradInput() {
  ir::OpDef op;
  op.name = "conv2d_grad_input";
  op.doc =
      "dx of conv2d, whose images have the sizes `size`: the transposed convolution. "
      "dx[n,c,h,w] = sum over o, k, l of weight[o,c,k,l] dy[n,o,i,j] with h = s i + d k - p and "
      "w = s j + d l - p.";
  op.min_inputs = op.max_inputs = 2;
  op.attributes = WindowAttributes();
  op.attributes.push_back({"size", std::vector<int64_t>{}, true});
  op.infer_shape = GradInputType;
  op.sbp_signatures = [](const ir::OpCall&) {
    return Signatures{{{Sbp::S(0), B}, {Sbp::S(0)}}, {{P, B}, {P}}, {{B, P}, {P}}};
  };
  op.gradient = [](ir::GradientContext& context) {
    const ir::Attributes& attributes = context.node().attributes;
    ir::Value* const dy = context.input(0);
    ir::Value* const weight = context.input(1);
    ir::Value* const gradient = context.output_gradient();
    if (context.needs(0)) {
      context.set_input_gradient(0, Conv(context.builder(), gradient, weight, attributes));
    }
    if (context.needs(1)) {
      context.set_input_gradient(
          1, GradWeight(context.builder(), dy, gradient, weight->type.shape, attributes));
    }
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) {
    return ProductFlops(call.inputs[0].shape, call.inputs[1].shape);
  };
  return op;
}

ir::OpDef Conv2dGradWeight() {
  ir::OpDef op;
  op.name = "conv2d_grad_weight";
  op.doc =
      "dw of conv2d, whose windows have the sizes `kernel`: dw[o,c,k,l] = sum over n, i, j of "
      "dy[n,o,i,j] x[n,c,s i + d k - p,s j + d l - p].";
  op.min_inputs = op.max_inputs = 2;
  op.attributes = WindowAttributes();
  op.attributes.push_back({"kernel", std::vector<int64_t>{}, true});
  op.infer_shape = GradWeightType;
  op.sbp_signatures = [](const ir::OpCall&) {
    return Signatures{{{Sbp::S(0), Sbp::S(0)}, {P}}, {{P, B}, {P}}, {{B, P}, {P}}};
  };
  op.gradient = [](ir::GradientContext& context) {
    const ir::Attributes& attributes = context.node().attributes;
    ir::Value* const dy = context.input(0);
    ir::Value* const x = context.input(1);
    ir::Value* const gradient = context.output_gradient();
    if (context.needs(0)) {
      context.set_input_gradient(0, Conv(context.builder(), x, gradient, attributes));
    }
    if (context.needs(1)) {
      context.set_input_gradient(
          1, GradInput(context.builder(), dy, gradient, x->type.shape, attributes));
    }
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) {
    return ProductFlops(call.inputs[0].shape, (*GradWeightType(call))[0].shape);
  };
  return op;
}

}  // namespace

void RegisterConvOps(ir::OpRegistry& registry) {
  registry.Register(Conv2d());
  registry.Register(Conv2dGradInput());
  registry.Register(Conv2dGradWeight());
}

}  // namespace zg
