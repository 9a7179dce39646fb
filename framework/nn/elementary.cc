#include "framework/nn/elementary.h"

#include <limits>

#include "framework/nn/conditions.h"
#include "framework/nn/constants.h"
#include "framework/nn/trace.h"

namespace zg {
namespace {

// The length of the other leg beside x in a right triangle of hypotenuse 1.
Var OtherLeg(Var x) { return sqrt((1.0 - x) * (1.0 + x)); }

// a - b n, also for an infinite b if n is 0.
Var LessMultiple(Var a, Var b, Var n) { return a - where(equal(n, 0.0), 0.0, b * n); }

}  // namespace

Var tan(Var x) {
  const nn::Trace::Function called("tan");
  return sin(x) / cos(x);
}

Var asin(Var x) {
  const nn::Trace::Function called("asin");
  return atan2(x, OtherLeg(x));
}

Var acos(Var x) {
  const nn::Trace::Function called("acos");
  return atan2(OtherLeg(x), x);
}

Var sinh(Var x) {
  const nn::Trace::Function called("sinh");
  return (expm1(x) - expm1(-x)) * 0.5;
}

// 1 + 2 sinh(x / 2)^2, whose gradient does not cancel near 0.
Var cosh(Var x) {
  const nn::Trace::Function called("cosh");
  return square(sinh(x * 0.5)) * 2.0 + 1.0;
}

// ln(x + sqrt(x^2 + 1)) = ln(1 + x + x^2 / (1 + sqrt(x^2 + 1))) of a positive x; of a large one
// ln(2 x). On each side the other formula gets 1.
Var asinh(Var x) {
  const nn::Trace::Function called("asinh");
  const Var is_negative = x < 0.0;
  const Var positive = where(is_negative, -x, x);
  const Var is_large = positive > 1e4;
  const Var small = where(is_large, 1.0, positive);
  const Var squares = square(small);
  const Var of_small = log1p(small + squares / (1.0 + sqrt(squares + 1.0)));
  const Var of_large = log(where(is_large, positive, 1.0)) + 0.6931471805599453;
  const Var y = where(is_large, of_large, of_small);
  return where(is_negative, -y, y);
}

Var acosh(Var x) {
  const nn::Trace::Function called("acosh");
  const Var above = x - 1.0;
  return log1p(above + sqrt(above) * sqrt(x + 1.0));
}

Var atanh(Var x) {
  const nn::Trace::Function called("atanh");
  return (log1p(x) - log1p(-x)) * 0.5;
}

Var ndtr(Var x) {
  const nn::Trace::Function called("ndtr");
  return erfc(x * -0.70710678118654752) * 0.5;
}

Var log_ndtr(Var x) {
  const nn::Trace::Function called("log_ndtr");
  // On each side the other formula gets 0, so that its result is finite.
  const Var below = clamp_max(x, 0.0) * -0.70710678118654752;
  const Var above = clamp_min(x, 0.0) * 0.70710678118654752;
  const Var of_below = log(erfcx(below) * 0.5) - square(below);
  return where(x < 0.0, of_below, log1p(erfc(above) * -0.5));
}

Var logit(Var x) {
  const nn::Trace::Function called("logit");
  return log(x / (1.0 - x));
}

Var xlogy(Var x, Var y) {
  const nn::Trace::Function called("xlogy");
  const Var is_infinite = equal(y, std::numeric_limits<double>::infinity());
  const Var is_zero = logical_and(equal(x, 0.0), logical_or(y <= 0.0, is_infinite));
  return where(is_zero, 0.0, x * log(where(is_zero, 1.0, y)));
}

Var sinc(Var x) {
  const nn::Trace::Function called("sinc");
  const Var angle = x * 3.141592653589793;
  const Var is_small = less(abs(angle), 0.5);
  // Near 0 the series, whose gradient does not cancel out.
  const Var square_angle = square(angle);
  Var series = 1.0 - square_angle / 72.0;
  for (const double divisor : {42.0, 20.0, 6.0}) series = 1.0 - square_angle / divisor * series;
  const Var large = where(is_small, 1.0, angle);
  return where(is_small, series, sin(large) / large);
}

Var hypot(Var a, Var b) {
  const nn::Trace::Function called("hypot");
  // Relative to the larger one, so that the squares are finite.
  const Var larger = stop_gradient(maximum(abs(a), abs(b)));
  const Var is_zero = equal(larger, 0.0);
  const Var unit = where(logical_or(is_zero, isinf(larger)), 1.0, larger);
  return unit * sqrt(square(a / unit) + square(b / unit));
}

Var frac(Var x) {
  const nn::Trace::Function called("frac");
  return x - trunc(x);
}

Var remainder(Var a, Var b) {
  const nn::Trace::Function called("remainder");
  // Below 0 by less than rounding keeps, or for an infinite b, the quotient is 0.
  const Var quotient = a / b;
  const Var is_below = sign(a) * sign(b) < 0.0;
  const Var whole = floor(quotient);
  return LessMultiple(a, b, where(is_below, minimum(whole, full_like(whole, -1.0)), whole));
}

Var fmod(Var a, Var b) {
  const nn::Trace::Function called("fmod");
  return LessMultiple(a, b, trunc(a / b));
}

Var exp2(Var x) {
  const nn::Trace::Function called("exp2");
  return pow(full_like(x, 2.0), x);
}

Var log2(Var x) {
  const nn::Trace::Function called("log2");
  return log(x) * 1.4426950408889634;
}

Var log10(Var x) {
  const nn::Trace::Function called("log10");
  return log(x) * 0.4342944819032518;
}

Var trunc(Var x) {
  const nn::Trace::Function called("trunc");
  return sign(x) * floor(abs(x));
}

// From the end that is closer, so that both ends are exact.
Var lerp(Var a, Var b, double weight) {
  const nn::Trace::Function called("lerp");
  return weight < 0.5 ? a + (b - a) * weight : b - (b - a) * (1.0 - weight);
}

Var lerp(Var a, Var b, Var weight) {
  const nn::Trace::Function called("lerp");
  const Var difference = b - a;
  return where(weight < 0.5, a + difference * weight, b - difference * (1.0 - weight));
}

}  // namespace zg
