#include "framework/nn/elementary.h"

#include "framework/nn/conditions.h"
#include "framework/nn/constants.h"
#include "framework/nn/trace.h"

namespace zg {
namespace {

// The length of the other leg beside x in a right triangle of hypotenuse 1.
Var OtherLeg(Var x) { return sqrt((1.0 - x) * (1.0 + x)); }

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

Var cosh(Var x) {
  const nn::Trace::Function called("cosh");
  return (exp(x) + exp(-x)) * 0.5;
}

// ln(x + sqrt(x^2 + 1)) = ln(1 + x + x^2 / (1 + sqrt(x^2 + 1))) of a positive x.
Var asinh(Var x) {
  const nn::Trace::Function called("asinh");
  const Var is_negative = x < 0.0;
  const Var positive = where(is_negative, -x, x);
  const Var squares = square(positive);
  const Var y = log1p(positive + squares / (1.0 + sqrt(squares + 1.0)));
  return where(is_negative, -y, y);
}

Var acosh(Var x) {
  const nn::Trace::Function called("acosh");
  const Var above = x - 1.0;
  return log1p(above + sqrt(above * (x + 1.0)));
}

Var atanh(Var x) {
  const nn::Trace::Function called("atanh");
  return (log1p(x) - log1p(-x)) * 0.5;
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

Var lerp(Var a, Var b, double weight) {
  const nn::Trace::Function called("lerp");
  return a + (b - a) * weight;
}

Var lerp(Var a, Var b, Var weight) {
  const nn::Trace::Function called("lerp");
  return a + (b - a) * weight;
}

}  // namespace zg
