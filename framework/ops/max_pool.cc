// Largest elements of windows of images, as in torch.nn.functional.max_pool2d, and the gradient.
// Shapes: x (N, C, H, W), y (N, C, OH, OW) with OH = (H + 2 padding - dilation (KH - 1) - 1) /
// stride + 1.
#include <fmt/format.h>

#include <limits>

#include "framework/ir/op_registry.h"
#include "framework/ops/formula_gradient.h"
#include "framework/ops/op_rules.h"
#include "framework/ops/window_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

std::vector<ir::AttributeDef> WindowAttributes() {
  return {{"kernel", std::vector<int64_t>{}, true},
          {"stride", std::vector<int64_t>{}, true},
          {"padding", std::vector<int64_t>{0, 0}},
          {"dilation", std::vector<int64_t>{1, 1}}};
}

// For the images that are the last input.
StatusOr<Shape> PooledShape(const ir::OpCall& call, const InputNames& names) {
  ZG_RETURN_IF_ERROR(CheckTwoNumbers(call, "kernel", 1));
  ZG_RETURN_IF_ERROR(CheckTwoNumbers(call, "stride", 1));
  ZG_RETURN_IF_ERROR(CheckTwoNumbers(call, "padding", 0));
  ZG_RETURN_IF_ERROR(CheckTwoNumbers(call, "dilation", 1));
  ZG_RETURN_IF_ERROR(CheckPaddingOfWindow(call, names));
  ZG_RETURN_IF_ERROR(CheckImages(call, names, names.size() - 1));
  std::vector<int64_t> dims = call.inputs.back().shape.dims();
  for (int i = 0; i < 2; ++i) {
    ZG_ASSIGN_OR_RETURN(
        dims[2 + i], CountWindows(call, names, i, dims[2 + i], call.attributes.Ints("kernel")[i]));
  }
  return Shape(std::move(dims));
}

// Elements that a result is chosen from.
int64_t WindowSize(const ir::Attributes& attributes) {
  return attributes.Ints("kernel")[0] * attributes.Ints("kernel")[1];
}

std::vector<ir::SbpSignature> SplitSamplesOrChannels(const ir::OpCall& call) {
  std::vector<ir::SbpSignature> signatures;
  for (const Sbp split : {Sbp::S(0), Sbp::S(1)}) {
    signatures.push_back({std::vector<Sbp>(call.inputs.size(), split), {split}});
  }
  return signatures;
}

ir::OpDef MaxPool2d() {
  const InputNames names = {"x"};
  ir::OpDef op;
  op.name = "max_pool2d";
  op.doc = "y[n,c,i,j] = the largest of x[n,c,s i + d k - p,s j + d l - p] over k, l inside of x.";
  op.attributes = WindowAttributes();
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
    ZG_ASSIGN_OR_RETURN(const Shape y, PooledShape(call, names));
    return Types{{call.inputs[0].dtype, y}};
  };
  op.sbp_signatures = SplitSamplesOrChannels;
  op.gradient = [](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    context.set_input_gradient(
        0, context.builder().Op("max_pool2d_grad", {context.output_gradient(), context.input(0)},
                                context.node().attributes));
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) {
    const StatusOr<Shape> y = PooledShape(call, {"x"});
    return y->num_elements() * WindowSize(call.attributes);
  };
  return op;
}

// max_pool2d_grad with a term for each element of the window.
std::vector<Term> GradFormula(const std::vector<Term>& in, const ir::Node& node) {
  const Term dy = in[0], x = Stop(in[1]), y = Append("max_pool2d", x, node.attributes);
  const auto of = [&](const char* name, int i) { return node.attributes.Ints(name)[i]; };
  if (y.value == nullptr) return {Term()};
  // Along dim 2 + i: what the window's element k reads of the padded images, and the way back.
  const auto read = [&](Term images, int i, int64_t k) {
    return Append("slice", images,
                  {{"dim", 2 + i},
                   {"start", k * of("dilation", i)},
                   {"size", y.value->type.shape.dim(2 + i)},
                   {"step", of("stride", i)}});
  };
  const auto put_back = [&](Term part, int i, int64_t k) {
    const int64_t first = k * of("dilation", i);
    const int64_t spread = (y.value->type.shape.dim(2 + i) - 1) * of("stride", i) + 1;
    const int64_t size = x.value->type.shape.dim(2 + i) + 2 * of("padding", i);
    const Term padded = Append("pad", part,
                               {{"dim", 2 + i},
                                {"before", first},
                                {"after", size - first - spread},
                                {"step", of("stride", i)}});
    return Append(
        "slice", padded,
        {{"dim", 2 + i}, {"start", of("padding", i)}, {"size", size - 2 * of("padding", i)}});
  };
  Term padded = x;
  for (const int i : {0, 1}) {
    padded = Append("pad", padded,
                    {{"dim", 2 + i},
                     {"before", of("padding", i)},
                     {"after", of("padding", i)},
                     {"value", -std::numeric_limits<double>::infinity()}});
  }
  Term dx, found;
  for (int64_t k = 0; k < of("kernel", 0); ++k) {
    for (int64_t l = 0; l < of("kernel", 1); ++l) {
      const Term is_largest = Append("equal", read(read(padded, 0, k), 1, l), y);
      const bool is_first = found.value == nullptr;
      const Term is_chosen =
          is_first ? is_largest
                   : Append("logical_and", is_largest, Append("equal", found, {{"value", 0.0}}));
      found = is_first ? is_largest : Append("logical_or", found, is_largest);
      const Term chosen = Append("masked_fill", dy, is_chosen, {{"value", 0.0}, {"where", false}});
      const Term term = put_back(put_back(chosen, 1, l), 0, k);
      dx = is_first ? term : dx + term;
    }
  }
  return {dx};
}

ir::OpDef MaxPool2dGrad() {
  const InputNames names = {"dy", "x"};
  ir::OpDef op;
  op.name = "max_pool2d_grad";
  op.doc =
      "dx of max_pool2d: the sum of dy over the windows in which the element is the first of the "
      "largest, in the order of the windows.";
  op.min_inputs = op.max_inputs = 2;
  op.attributes = WindowAttributes();
  op.infer_shape = [names](const ir::OpCall& call) -> StatusOr<Types> {
    ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
    ZG_ASSIGN_OR_RETURN(const Shape y, PooledShape(call, names));
    if (call.inputs[0].shape != y) {
      return Rejected(call, names, fmt::format("dy is not of the shape {}", y.ToString()));
    }
    return Types{call.inputs[1]};
  };
  op.sbp_signatures = [](const ir::OpCall& call) {
    std::vector<ir::SbpSignature> signatures = SplitSamplesOrChannels(call);
    signatures.push_back({{Sbp::P(), Sbp::B()}, {Sbp::P()}});
    return signatures;
  };
  op.gradient = [](ir::GradientContext& context) -> Status {
    ZG_RETURN_IF_ERROR(GradientOf(GradFormula)(context));
    if (!context.needs(1)) return Status::Ok();
    const Term x = {&context.builder(), context.input(1)};
    context.set_input_gradient(1, ReluGrad(x, 0.0 * x).value);  // 0, also of infinite x
    return Status::Ok();
  };
  op.flops = [](const ir::OpCall& call) {
    return call.inputs[0].shape.num_elements() * WindowSize(call.attributes);
  };
  return op;
}

}  // namespace

void RegisterMaxPoolOps(ir::OpRegistry& registry) {
  registry.Register(MaxPool2d());
  registry.Register(MaxPool2dGrad());
}

}  // namespace zg
