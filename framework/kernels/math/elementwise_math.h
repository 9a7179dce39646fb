// One element of every elementwise op, as kernels of all devices compute it.
//
//   Evaluate(ElementwiseCode::kGelu, x, 0.0f, 0.0f)
#pragma once

#include <cstdint>
#include <string_view>

#include "framework/base/host_device.h"
#include "framework/kernels/math/vector_math.h"

namespace zg {

enum class ElementwiseCode : int32_t {
  kAdd,
  kSubtract,
  kMultiply,
  kScale,
  kRelu,
  kReluGrad,
  kGelu,
  kGeluGrad,
};

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

}  // namespace elementwise

// `b` and `scalar` only count for ops that have them.
ZG_HOST_DEVICE ZG_INLINE float Evaluate(ElementwiseCode code, float a, float b, float scalar) {
  switch (code) {
    case ElementwiseCode::kAdd:
      return a + b;
    case ElementwiseCode::kSubtract:
      return a - b;
    case ElementwiseCode::kMultiply:
      return a * b;
    case ElementwiseCode::kScale:
      return a * scalar;
    case ElementwiseCode::kRelu:
      return elementwise::Relu(a);
    case ElementwiseCode::kReluGrad:
      return elementwise::ReluGrad(a, b);
    case ElementwiseCode::kGelu:
      return elementwise::Gelu(a);
    case ElementwiseCode::kGeluGrad:
      return elementwise::GeluGrad(a, b);
  }
  return 0.0f;
}

// Of an op's name; false when it is no elementwise op.
inline bool FindElementwiseCode(std::string_view op, ElementwiseCode* code) {
  struct Entry {
    std::string_view op;
    ElementwiseCode code;
  };
  constexpr Entry kEntries[] = {
      {"add", ElementwiseCode::kAdd},           {"subtract", ElementwiseCode::kSubtract},
      {"multiply", ElementwiseCode::kMultiply}, {"scale", ElementwiseCode::kScale},
      {"relu", ElementwiseCode::kRelu},         {"relu_grad", ElementwiseCode::kReluGrad},
      {"gelu", ElementwiseCode::kGelu},         {"gelu_grad", ElementwiseCode::kGeluGrad},
  };
  for (const Entry& entry : kEntries) {
    if (entry.op != op) continue;
    *code = entry.code;
    return true;
  }
  return false;
}

}  // namespace zg
