// Images in other sizes, by linear maps of rows and of columns: averages of windows, nearest,
// bilinear and bicubic interpolation; and their gradient, the transposed map. Each is the gradient of the other.
// Shapes: x (N, C, H, W), y (N, C, OH, OW).
//
// Methods, as in torch.nn.functional, and the rows h that they read for row i of y:
//   "average"   avg_pool2d: those of the window `kernel` that begins at i stride - padding; divided by
//               the window's part inside of the padded x, or with `counts_padding` false inside of x; of
//               as many windows as fit, or one more that begins inside of x
//   "adaptive"  adaptive_avg_pool2d: from floor(i H / OH) up to ceil((i + 1) H / OH)
//   "nearest"   interpolate: floor(i H / OH)
//   "linear"    interpolate, bilinear: at (i + 0.5) H / OH - 0.5, at least 0, or with `align_corners` at
//               i (H - 1) / (OH - 1), between both neighbours
//   "cubic"     interpolate, bicubic: those positions, also below 0; the four rows around it, of which
//               the border's stand for those outside of x
#include <fmt/format.h>

#include "framework/ir/op_registry.h"
#include "framework/ops/op_rules.h"
#include "framework/ops/window_rules.h"

namespace zg {
namespace {

using Types = std::vector<TensorType>;

std::vector<ir::AttributeDef> ResampleAttributes() {
  return {{"method", std::string(), true},
          {"size", std::vector<int64_t>{}, true},
          {"kernel", std::vector<int64_t>{1, 1}},
          {"stride", std::vector<int64_t>{1, 1}},
          {"padding", std::vector<int64_t>{0, 0}},
          {"counts_padding", true},
          {"align_corners", false}};
}

// Error unless the attributes turn images of size `in` into images of size `out`.
Status CheckMethod(const ir::OpCall& call, const InputNames& names, const int64_t (&in)[2],
                   const int64_t (&out)[2]) {
  const std::string& method = call.attributes.String("method");
  ZG_RETURN_IF_ERROR(CheckTwoNumbers(call, "kernel", 1));
  ZG_RETURN_IF_ERROR(CheckTwoNumbers(call, "stride", 1));
  ZG_RETURN_IF_ERROR(CheckTwoNumbers(call, "padding", 0));
  if (method == "adaptive" || method == "nearest" || method == "linear" || method == "cubic") {
    return Status::Ok();
  }
  if (method != "average") {
    return InvalidArgument(
        "{}: got the method '{}', expected average, adaptive, nearest, linear or cubic",
        call.op->name, method);
  }
  ZG_RETURN_IF_ERROR(CheckPaddingOfWindow(call, names));
  for (int i = 0; i < 2; ++i) {
    const int64_t kernel = call.attributes.Ints("kernel")[i];
    const int64_t padding = call.attributes.Ints("padding")[i];
    const int64_t room = in[i] + (2 * padding - kernel);  // the difference is at most 0
    const int64_t stride = call.attributes.Ints("stride")[i];
    const int64_t expected = room < 0 ? 0 : room / stride + 1;
    const bool has_part_window =
        expected > 0 && room % stride != 0 && expected * stride < in[i] + padding;
    if (out[i] == expected || (has_part_window && out[i] == expected + 1)) continue;
    return Rejected(call, names,
                    fmt::format("got a result of size {}, expected {}", out[i], expected));
  }
  return Status::Ok();
}

StatusOr<Types> ResampleType(const ir::OpCall& call, const InputNames& names, bool is_gradient) {
  ZG_RETURN_IF_ERROR(CheckOneFloatDType(call, names));
  ZG_RETURN_IF_ERROR(CheckTwoNumbers(call, "size", 1));
  ZG_RETURN_IF_ERROR(CheckImages(call, names, 0));
  const Shape& shape = call.inputs[0].shape;
  const int64_t own[2] = {shape.dim(2), shape.dim(3)};
  const int64_t other[2] = {call.attributes.Ints("size")[0], call.attributes.Ints("size")[1]};
  ZG_RETURN_IF_ERROR(
      CheckMethod(call, names, is_gradient ? other : own, is_gradient ? own : other));
  return Types{{call.inputs[0].dtype, Shape{shape.dim(0), shape.dim(1), other[0], other[1]}}};
}

ir::OpDef Resampling(const char* name, const char* gradient, const InputNames& names,
                     bool is_gradient, const char* doc) {
  ir::OpDef op;
  op.name = name;
  op.doc = doc;
  op.attributes = ResampleAttributes();
  op.infer_shape = [=](const ir::OpCall& call) { return ResampleType(call, names, is_gradient); };
  op.sbp_signatures = [](const ir::OpCall&) {
    std::vector<ir::SbpSignature> signatures;
    for (const Sbp sbp : {Sbp::S(0), Sbp::S(1), Sbp::P()}) signatures.push_back({{sbp}, {sbp}});
    return signatures;
  };
  op.gradient = [gradient](ir::GradientContext& context) {
    if (!context.needs(0)) return Status::Ok();
    const Shape& x = context.input(0)->type.shape;
    ir::Attributes attributes = context.node().attributes;
    attributes.Set("size", std::vector<int64_t>{x.dim(2), x.dim(3)});
    context.set_input_gradient(
        0, context.builder().Op(gradient, {context.output_gradient()}, std::move(attributes)));
    return Status::Ok();
  };
  op.flops = [names, is_gradient](const ir::OpCall& call) {
    const Shape y = (*ResampleType(call, names, is_gradient))[0].shape;
    return 2 * (call.inputs[0].shape.num_elements() + y.num_elements());
  };
  return op;
}

}  // namespace

void RegisterResampleOps(ir::OpRegistry& registry) {
  registry.Register(Resampling(
      "resample2d", "resample2d_grad", {"x"}, false,
      "y[n,c,i,j] = sum over w of b[j,w] sum over h of a[i,h] x[n,c,h,w]; y has the height and width "
      "`size`, and a and b are those of the method."));
  registry.Register(
      Resampling("resample2d_grad", "resample2d", {"dy"}, true,
                 "dx of resample2d, whose images have the height and width `size`: "
                 "dx[n,c,h,w] = sum over j of b[j,w] sum over i of a[i,h] dy[n,c,i,j]."));
}

}  // namespace zg
