#include "framework/kernels/cpu/elementwise_blocks.h"

#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/vector_math.h"

namespace zg {
namespace {

ZG_MULTIVERSION void Add(BlockInputs inputs, float, int64_t count, float* out) {
  const float* const a = inputs[0];
  const float* const b = inputs[1];
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

ZG_MULTIVERSION void Subtract(BlockInputs inputs, float, int64_t count, float* out) {
  const float* const a = inputs[0];
  const float* const b = inputs[1];
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) out[i] = a[i] - b[i];
}

ZG_MULTIVERSION void Multiply(BlockInputs inputs, float, int64_t count, float* out) {
  const float* const a = inputs[0];
  const float* const b = inputs[1];
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) out[i] = a[i] * b[i];
}

ZG_MULTIVERSION void Scale(BlockInputs inputs, float factor, int64_t count, float* out) {
  const float* const x = inputs[0];
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] * factor;
}

ZG_MULTIVERSION void Relu(BlockInputs inputs, float, int64_t count, float* out) {
  const float* const x = inputs[0];
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] < 0.0f ? 0.0f : x[i];  // NaN stays NaN
}

ZG_MULTIVERSION void ReluGrad(BlockInputs inputs, float, int64_t count, float* out) {
  const float* const dy = inputs[0];
  const float* const y = inputs[1];
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) out[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}

// The tanh form x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3), is x / (1 + e^(-2u)), which
// has no cancellation for negative x (Hendrycks and Gimpel, arXiv 1606.08415).
constexpr float kMinusTwoRootTwoOverPi = -1.5957691216057308f;
constexpr float kCubic = 0.044715f;

ZG_MULTIVERSION void Gelu(BlockInputs inputs, float, int64_t count, float* out) {
  const float* const x = inputs[0];
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    const float v = x[i];
    const float e = Exp((v * kMinusTwoRootTwoOverPi) * (v * v * kCubic + 1.0f));
    out[i] = v / (1.0f + e);
  }
}

// With e = e^(-2u) and s = 1 / (1 + e): d(x s)/dx = s + x s (1 - s) 2u', and s (1 - s) = e s s.
ZG_MULTIVERSION void GeluGrad(BlockInputs inputs, float, int64_t count, float* out) {
  const float* const dy = inputs[0];
  const float* const x = inputs[1];
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    const float v = x[i];
    const float square = v * v;
    const float e = Exp((v * kMinusTwoRootTwoOverPi) * (square * kCubic + 1.0f));
    const float s = 1.0f / (1.0f + e);
    const float slope = square * (3.0f * kCubic * -kMinusTwoRootTwoOverPi) - kMinusTwoRootTwoOverPi;
    out[i] = dy[i] * (s + (v * slope) * ((e * s) * s));
  }
}

constexpr ElementwiseOp kOps[] = {
    {"add", 2, "", Add},           {"gelu", 1, "", Gelu},         {"gelu_grad", 2, "", GeluGrad},
    {"multiply", 2, "", Multiply}, {"relu", 1, "", Relu},         {"relu_grad", 2, "", ReluGrad},
    {"scale", 1, "factor", Scale}, {"subtract", 2, "", Subtract},
};

}  // namespace

const ElementwiseOp* FindElementwiseOp(std::string_view name) {
  for (const ElementwiseOp& op : kOps) {
    if (op.name == name) return &op;
  }
  return nullptr;
}

}  // namespace zg
