// One element of every elementwise op, as kernels of all devices compute it.
//
//   Evaluate(ElementwiseCode::kGelu, x, 0.0f, 0.0f)
#pragma once

#include <cstdint>

#include "framework/base/host_device.h"
#include "framework/kernels/math/vector_math.h"
#include "framework/ops/elementwise_table.h"

namespace zg {

namespace elementwise {

// x or 0. By a mask: from a selection GCC makes branches when the result is rounded to f16.
ZG_HOST_DEVICE ZG_INLINE float KeepIf(bool keep, float x) {
  return BitCast<float>(BitCast<uint32_t>(x) & -static_cast<uint32_t>(keep));
}

ZG_HOST_DEVICE ZG_INLINE float Relu(float x) { return KeepIf(!(x < 0.0f), x); }  // NaN stays NaN

ZG_HOST_DEVICE ZG_INLINE float ReluGrad(float dy, float y) { return KeepIf(y > 0.0f, dy); }

// The tanh form x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3), is x / (1 + e^(-2u)), which
// has no cancellation for negative x (Hendrycks and Gimpel, arXiv 1606.08415).
inline constexpr float kMinusTwoRootTwoOverPi = -1.5957691216057308f;
inline constexpr float kCubic = 0.044715f;

ZG_HOST_DEVICE ZG_INLINE float Gelu(float x) {
  const float e = Exp((x * kMinusTwoRootTwoOverPi) * (x * x * kCubic + 1.0f));
  return x / (1.0f + e);
}

// With e = e^(-2u) and s = 1 / (1 + e): d(x s)/dx = s + x s (1 - s) 2u', and s (1 - s) = e s s.
ZG_HOST_DEVICE ZG_INLINE float GeluGrad(float dy, float x) {
  const float square = x * x;
  const float e = Exp((x * kMinusTwoRootTwoOverPi) * (square * kCubic + 1.0f));
  const float s = 1.0f / (1.0f + e);
  const float slope = square * (3.0f * kCubic * -kMinusTwoRootTwoOverPi) - kMinusTwoRootTwoOverPi;
  return dy * (s + (x * slope) * ((e * s) * s));
}

ZG_HOST_DEVICE ZG_INLINE float Silu(float x) { return x / (1.0f + Exp(-x)); }

// With e = e^(-x): s (1 - s) = e s s.
ZG_HOST_DEVICE ZG_INLINE float SiluGrad(float dy, float x) {
  const float e = Exp(-x);
  const float s = 1.0f / (1.0f + e);
  return dy * (s + x * ((e * s) * s));
}

// Here, so that formulas find the functions above.
ZG_HOST_DEVICE ZG_INLINE float Evaluate(ElementwiseCode code, float first,
                                        [[maybe_unused]] float second,
                                        [[maybe_unused]] float scalar) {
  switch (code) {
#define ZG_UNARY(Name, name, x, doc, flops, linearity, formula, ...) \
  case ElementwiseCode::k##Name: {                                   \
    const float x = first;                                           \
    return formula;                                                  \
  }
#define ZG_UNARY_WITH(Name, name, x, attribute, doc, flops, linearity, formula, ...) \
  case ElementwiseCode::k##Name: {                                                   \
    const float x = first;                                                           \
    const float attribute = scalar;                                                  \
    return formula;                                                                  \
  }
#define ZG_BINARY(Name, name, a, b, doc, flops, linearity, formula, ...) \
  case ElementwiseCode::k##Name: {                                       \
    const float a = first;                                               \
    const float b = second;                                              \
    return formula;                                                      \
  }
#include "framework/ops/elementwise.inc"
  }
  return 0.0f;
}

}  // namespace elementwise

// The formula of a row of framework/ops/elementwise.inc for one element. `b` and `scalar` only
// count for ops that have them.
ZG_HOST_DEVICE ZG_INLINE float Evaluate(ElementwiseCode code, float a, float b, float scalar) {
  return elementwise::Evaluate(code, a, b, scalar);
}

}  // namespace zg
