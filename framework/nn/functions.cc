#include "framework/nn/functions.h"

#include <utility>

#include "framework/nn/conditions.h"
#include "framework/nn/constants.h"
#include "framework/nn/dims.h"
#include "framework/nn/shapes.h"
#include "framework/nn/trace.h"

namespace zg {
namespace {

bool IsInteger(const Var& x) { return x.dtype() == DType::kI64; }

// A larger one holds what a smaller one does, but for rounding.
int Width(DType dtype) {
  if (dtype == DType::kBool) return 0;
  if (dtype == DType::kI64) return 1;
  return dtype == DType::kF32 ? 3 : 2;
}

// The dtype that PyTorch computes in: the wider one; of bf16 and f16 f32.
DType WiderOf(const Var& a, const Var& b) {
  const int width_a = Width(a.dtype()), width_b = Width(b.dtype());
  if (width_a == width_b) return a.dtype() == b.dtype() ? a.dtype() : DType::kF32;
  return width_a > width_b ? a.dtype() : b.dtype();
}

// A function with an op for floating-point operands and, unless it is null, one for i64. Each operand
// is converted to the wider dtype of both.
Var OfTwo(const char* function, const char* integer_op, Var a, Var b) {
  const nn::Trace::Function called(function);
  if (!a.empty() && !b.empty() && a.dtype() != b.dtype()) {
    const DType dtype = WiderOf(a, b);
    if (a.dtype() != dtype) a = to(a, dtype);
    if (b.dtype() != dtype) b = to(b, dtype);
  }
  return nn::append(IsInteger(a) && integer_op != nullptr ? integer_op : function, {a, b});
}

// The same of one operand and a number, which is the attribute `name` of the floating-point op.
Var WithNumber(const char* function, const char* name, const char* integer_op, const Var& x,
               double number) {
  if (!IsInteger(x)) return nn::append(function, {x}, {{name, number}});
  return nn::Checked(function, x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::CheckNumberBeside(function, x, number));
    return nn::append(integer_op, {x}, {{"value", static_cast<int64_t>(number)}});
  });
}

bool IsRange(const char* function, double low, double high) {
  if (low <= high) return true;
  nn::Trace::Of(function).Fail(
      InvalidArgument("{}: got the range [{}, {}], expected low <= high", function, low, high));
  return false;
}

}  // namespace

Var nn::append(const std::string& op, const std::vector<Var>& inputs, ir::Attributes attributes) {
  return Trace::Of(op).Append(op, inputs, std::move(attributes));
}

std::vector<Var> nn::append_all(const std::string& op, const std::vector<Var>& inputs,
                                ir::Attributes attributes) {
  return Trace::Of(op).AppendAll(op, inputs, std::move(attributes));
}

Var add(Var a, Var b) { return OfTwo("add", "integer_add", a, b); }
Var subtract(Var a, Var b) { return OfTwo("subtract", "integer_subtract", a, b); }
Var multiply(Var a, Var b) { return OfTwo("multiply", "integer_multiply", a, b); }
Var maximum(Var a, Var b) { return OfTwo("maximum", "integer_maximum", a, b); }
Var minimum(Var a, Var b) { return OfTwo("minimum", "integer_minimum", a, b); }

namespace {

// A norm over the last dims of x, those of its weights, as one dim.
StatusOr<Var> OverDimsOf(const char* function, Var x, const std::vector<Var>& weights,
                         const ir::Attributes& attributes) {
  const Shape& dims = weights[0].shape();
  const int64_t num_dims = dims.num_dims(), leading = x.shape().num_dims() - num_dims;
  bool fits = leading >= 0;
  for (int i = 0; fits && i < num_dims; ++i) {
    fits = x.dim(static_cast<int>(leading) + i) == dims.dim(i);
  }
  for (const Var& weight : weights) fits = fits && weight.shape() == dims;
  if (num_dims >= 2 && !fits) {
    return InvalidArgument("{}: expected the last dims {}, those of the weights",
                           nn::Caller(function, x), dims.ToString());
  }
  if (num_dims < 2) {
    std::vector<Var> inputs = {x};
    inputs.insert(inputs.end(), weights.begin(), weights.end());
    return nn::append(function, inputs, attributes);
  }
  std::vector<Var> inputs = {flatten(x, leading, -1)};
  for (const Var& weight : weights) inputs.push_back(flatten(weight, 0, -1));
  return unflatten(nn::append(function, inputs, attributes), -1, dims.dims());
}

}  // namespace

Var layer_norm(Var x, Var gamma, Var beta, double epsilon) {
  return nn::Checked("layer_norm", x, [&]() -> StatusOr<Var> {
    return OverDimsOf("layer_norm", x, {gamma, beta}, {{"epsilon", epsilon}});
  });
}

Var rms_norm(Var x, Var weight, double epsilon) {
  return nn::Checked("rms_norm", x, [&]() -> StatusOr<Var> {
    return OverDimsOf("rms_norm", x, {weight}, {{"epsilon", epsilon}});
  });
}

Var layer_norm(Var x, double epsilon) {
  return nn::Checked("layer_norm", x, [&]() -> StatusOr<Var> {
    const int64_t channels = x.shape().num_dims() == 0 ? 1 : x.dim(-1);
    return layer_norm(x, ones({channels}, x.dtype()), zeros({channels}, x.dtype()), epsilon);
  });
}

Var divide(Var a, Var b) {
  if (!IsInteger(a) || IsFloat(b.dtype())) return OfTwo("divide", nullptr, a, b);
  return nn::Checked("divide", a, [&]() -> StatusOr<Var> {
    return InvalidArgument(
        "{}: expected floating-point operands\n  hint: floor_divide(x, n) divides i64 by a whole "
        "number; or convert with to(x, dtype)",
        nn::Caller("divide", a));
  });
}

Var scale(Var x, double factor) {
  return WithNumber("scale", "factor", "integer_multiply", x, factor);
}
Var shift(Var x, double offset) { return WithNumber("shift", "offset", "integer_add", x, offset); }

Var abs(Var x) {
  if (!IsInteger(x)) return nn::append("abs", {x});
  const nn::Trace::Function called("abs");
  return maximum(x, scale(x, -1.0));
}

Var sign(Var x) {
  if (!IsInteger(x)) return nn::append("sign", {x});
  const nn::Trace::Function called("sign");
  return clamp(x, -1.0, 1.0);
}

Var square(Var x) {
  if (!IsInteger(x)) return nn::append("square", {x});
  const nn::Trace::Function called("square");
  return multiply(x, x);
}

Var clamp_min(Var x, double low) {
  return WithNumber("clamp_min", "low", "integer_maximum", x, low);
}
Var clamp_max(Var x, double high) {
  return WithNumber("clamp_max", "high", "integer_minimum", x, high);
}

Var pow(Var x, double exponent) {
  const nn::Trace::Function called("pow");
  if (exponent == 0.5) return sqrt(x);
  if (exponent == 1.0) return x;
  if (exponent == 2.0) return square(x);
  if (exponent == 3.0) return multiply(x, square(x));
  if (exponent == -0.5) return rsqrt(x);
  if (exponent == -1.0) return reciprocal(x);
  return nn::append("power", {x}, {{"exponent", exponent}});
}

Var clamp(Var x, double low, double high) {
  const nn::Trace::Function called("clamp");
  return IsRange("clamp", low, high) ? clamp_max(clamp_min(x, low), high) : Var();
}

Var tanhshrink(Var x) {
  const nn::Trace::Function called("tanhshrink");
  return subtract(x, tanh(x));
}

Var softshrink(Var x, double by) {
  const nn::Trace::Function called("softshrink");
  return subtract(x, clamp(x, -by, by));
}

Var hardshrink(Var x, double by) {
  const nn::Trace::Function called("hardshrink");
  return where(less_equal(abs(x), by), 0.0, x);
}

Var threshold(Var x, double limit, double value) {
  const nn::Trace::Function called("threshold");
  return where(less_equal(x, limit), value, x);
}

Var logaddexp(Var a, Var b) {
  const nn::Trace::Function called("logaddexp");
  const auto finite = [](Var x) { return clamp(x, -3e38, 3e38); };  // for equal infinities
  const Var larger = maximum(a, b);
  return larger + softplus(finite(minimum(a, b)) - finite(larger));
}

Var relu6(Var x) {
  const nn::Trace::Function called("relu6");
  return hardtanh(x, 0.0, 6.0);
}

Var hardsigmoid(Var x) {
  const nn::Trace::Function called("hardsigmoid");
  return scale(relu6(shift(x, 3.0)), 1.0 / 6.0);
}

Var hardswish(Var x) {
  const nn::Trace::Function called("hardswish");
  return multiply(x, hardsigmoid(x));
}

Var mish(Var x) {
  const nn::Trace::Function called("mish");
  return multiply(x, tanh(softplus(x)));
}

Var selu(Var x) {
  const nn::Trace::Function called("selu");
  return scale(elu(x, 1.6732632423543772), 1.0507009873554805);
}

Var log_sigmoid(Var x) {
  const nn::Trace::Function called("log_sigmoid");
  return scale(softplus(scale(x, -1.0)), -1.0);
}

Var softsign(Var x) {
  const nn::Trace::Function called("softsign");
  return divide(x, shift(abs(x), 1.0));
}

Var hardtanh(Var x, double low, double high) {
  const nn::Trace::Function called("hardtanh");
  if (!IsRange("hardtanh", low, high)) return Var();
  return where(x <= low, low, where(x >= high, high, x));
}

Var celu(Var x, double alpha) {
  const nn::Trace::Function called("celu");
  if (!(alpha > 0.0)) {
    return nn::Trace::Of("celu").Fail(
        InvalidArgument("celu: alpha is {}, expected a positive number", alpha));
  }
  return scale(elu(scale(x, 1.0 / alpha), 1.0), alpha);
}

Var glu(Var x, int64_t dim) {
  const nn::Trace::Function called("glu");
  const std::vector<Var> halves = chunk(x, 2, dim);
  return halves.size() == 2 ? multiply(halves[0], sigmoid(halves[1])) : Var();
}

Var prelu(Var x, Var slope) {
  return nn::Checked("prelu", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::Trace::Of("prelu").CheckUsable(slope).WithContext("prelu: slope"));
    const Shape& shape = slope.shape();
    const bool has_channels = x.shape().num_dims() >= 2;
    if (shape.num_dims() != 1 ||
        (shape.dim(0) != 1 && !(has_channels && shape.dim(0) == x.dim(1)))) {
      return InvalidArgument(
          "{}: got a slope of shape {}, expected [1] or the channels, dim 1 of x",
          nn::Caller("prelu", x), shape.ToString());
    }
    Var of_channels = slope;
    if (shape.dim(0) != 1) {
      Dims dims(x.shape().num_dims() - 1, 1);
      dims[0] = shape.dim(0);
      of_channels = reshape(slope, dims);
    }
    return where(greater(x, 0.0), x, multiply(of_channels, x));
  });
}

Var dropout(Var x, double probability) {
  nn::Trace& trace = nn::Trace::Of("dropout");
  if (!(probability >= 0.0 && probability < 1.0)) {
    return trace.Fail(
        InvalidArgument("dropout: probability is {}, expected 0 <= probability < 1", probability));
  }
  if (!trace.training() || probability == 0.0) return x;
  return trace.Append("dropout", {x},
                      {{"probability", probability}, {"stream", trace.NextStream()}});
}

}  // namespace zg
