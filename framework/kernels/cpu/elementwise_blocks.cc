#include "framework/kernels/cpu/elementwise_blocks.h"

#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/math/elementwise_math.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

template <ElementwiseCode kCode, typename T>
ZG_MULTIVERSION void RunUnary(const void* const* inputs, float scalar, int64_t count, void* out) {
  const T* const x = static_cast<const T*>(inputs[0]);
  T* const y = static_cast<T*>(out);
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    y[i] = FromF32<T>(Evaluate(kCode, ToF32(x[i]), 0.0f, scalar));
  }
}

template <ElementwiseCode kCode, typename T>
ZG_MULTIVERSION void RunBinary(const void* const* inputs, float, int64_t count, void* out) {
  const T* const a = static_cast<const T*>(inputs[0]);
  const T* const b = static_cast<const T*>(inputs[1]);
  T* const y = static_cast<T*>(out);
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    y[i] = FromF32<T>(Evaluate(kCode, ToF32(a[i]), ToF32(b[i]), 0.0f));
  }
}

template <ElementwiseCode kCode>
constexpr ElementwiseOp Unary(std::string_view name, std::string_view scalar_attribute = "") {
  return {name,
          1,
          scalar_attribute,
          RunUnary<kCode, float>,
          RunUnary<kCode, BFloat16>,
          RunUnary<kCode, Float16>};
}

template <ElementwiseCode kCode>
constexpr ElementwiseOp Binary(std::string_view name) {
  return {
      name, 2, "", RunBinary<kCode, float>, RunBinary<kCode, BFloat16>, RunBinary<kCode, Float16>};
}

const ElementwiseOp kOps[] = {
    Binary<ElementwiseCode::kAdd>("add"),
    Unary<ElementwiseCode::kGelu>("gelu"),
    Binary<ElementwiseCode::kGeluGrad>("gelu_grad"),
    Binary<ElementwiseCode::kMultiply>("multiply"),
    Unary<ElementwiseCode::kRelu>("relu"),
    Binary<ElementwiseCode::kReluGrad>("relu_grad"),
    Unary<ElementwiseCode::kScale>("scale", "factor"),
    Binary<ElementwiseCode::kSubtract>("subtract"),
};

}  // namespace

ElementwiseFunction ElementwiseOp::function(DType dtype) const {
  switch (dtype) {
    case DType::kBF16:
      return bf16;
    case DType::kF16:
      return f16;
    default:
      return f32;
  }
}

const ElementwiseOp* FindElementwiseOp(std::string_view name) {
  for (const ElementwiseOp& op : kOps) {
    if (op.name == name) return &op;
  }
  return nullptr;
}

}  // namespace zg
