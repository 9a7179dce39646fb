#include "framework/kernels/cpu/elementwise_blocks.h"

#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/math/elementwise_math.h"

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
  for (int64_t i = 0; i < count; ++i) out[i] = elementwise::Relu(x[i]);
}

ZG_MULTIVERSION void ReluGrad(BlockInputs inputs, float, int64_t count, float* out) {
  const float* const dy = inputs[0];
  const float* const y = inputs[1];
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) out[i] = elementwise::ReluGrad(dy[i], y[i]);
}

ZG_MULTIVERSION void Gelu(BlockInputs inputs, float, int64_t count, float* out) {
  const float* const x = inputs[0];
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) out[i] = elementwise::Gelu(x[i]);
}

ZG_MULTIVERSION void GeluGrad(BlockInputs inputs, float, int64_t count, float* out) {
  const float* const dy = inputs[0];
  const float* const x = inputs[1];
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) out[i] = elementwise::GeluGrad(dy[i], x[i]);
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
