#include "framework/nn/conditions.h"

#include <limits>

#include "framework/nn/dims.h"
#include "framework/nn/functions.h"

namespace zg {
namespace {

// For conditions only; x is one of them.
template <typename Build>
Var OfConditions(const char* function, Var x, const Build& build) {
  return nn::Checked(function, x, [&]() -> StatusOr<Var> {
    if (x.dtype() != DType::kBool) {
      return InvalidArgument("{}: expected bool, such as the result of a comparison",
                             nn::Caller(function, x));
    }
    return build();
  });
}

Var CompareWith(const char* op, Var x, double value) {
  return nn::Checked(op, x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::CheckNumberBeside(op, x, value));
    return nn::append(op, {x}, {{"value", value}});
  });
}

}  // namespace

Var equal(Var a, Var b) { return nn::append("equal", {a, b}); }
Var not_equal(Var a, Var b) { return nn::append("not_equal", {a, b}); }
Var less(Var a, Var b) { return nn::append("less", {a, b}); }
Var less_equal(Var a, Var b) { return nn::append("less_equal", {a, b}); }
Var greater(Var a, Var b) { return nn::append("greater", {a, b}); }
Var greater_equal(Var a, Var b) { return nn::append("greater_equal", {a, b}); }

Var equal(Var x, double value) { return CompareWith("equal", x, value); }
Var not_equal(Var x, double value) { return CompareWith("not_equal", x, value); }
Var less(Var x, double value) { return CompareWith("less", x, value); }
Var less_equal(Var x, double value) { return CompareWith("less_equal", x, value); }
Var greater(Var x, double value) { return CompareWith("greater", x, value); }
Var greater_equal(Var x, double value) { return CompareWith("greater_equal", x, value); }

Var logical_and(Var a, Var b) { return nn::append("logical_and", {a, b}); }
Var logical_or(Var a, Var b) { return nn::append("logical_or", {a, b}); }
Var logical_xor(Var a, Var b) {
  return OfConditions("logical_xor", a, [&] { return not_equal(a, b); });
}
Var logical_not(Var x) {
  return OfConditions("logical_not", x, [&] { return equal(x, 0.0); });
}

Var isnan(Var x) {
  const nn::Trace::Function called("isnan");
  return not_equal(x, x);
}
Var isinf(Var x) {
  const nn::Trace::Function called("isinf");
  if (!IsFloat(x.dtype())) return not_equal(x, x);  // none is
  return equal(abs(x), std::numeric_limits<double>::infinity());
}
Var isfinite(Var x) {
  const nn::Trace::Function called("isfinite");
  return equal(x - x, 0.0);
}

Var where(Var condition, Var a, Var b) { return nn::append("where", {condition, a, b}); }
Var where(Var condition, Var a, double b) {
  const nn::Trace::Function called("where");
  return nn::append("masked_fill", {a, condition}, {{"value", b}, {"where", false}});
}
Var where(Var condition, double a, Var b) {
  const nn::Trace::Function called("where");
  return masked_fill(b, condition, a);
}
Var masked_fill(Var x, Var mask, double value) {
  return nn::append("masked_fill", {x, mask}, {{"value", value}});
}

Var nan_to_num(Var x, double nan, double positive_infinity, double negative_infinity) {
  const nn::Trace::Function called("nan_to_num");
  const Var is_positive = equal(x, std::numeric_limits<double>::infinity());
  const Var is_negative = equal(x, -std::numeric_limits<double>::infinity());
  const Var bounded =
      where(is_positive, positive_infinity, where(is_negative, negative_infinity, x));
  return where(isnan(x), nan, bounded);
}

Var to(Var x, DType dtype) {
  return nn::Checked("to", x, [&]() -> StatusOr<Var> {
    if (x.dtype() == dtype) return x;
    return nn::append("cast", {x}, {{"dtype", dtype}});
  });
}

}  // namespace zg
