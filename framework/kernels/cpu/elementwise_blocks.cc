#include "framework/kernels/cpu/elementwise_blocks.h"

#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/math/elementwise_math.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

template <ElementwiseCode kCode, typename T>
void RunUnary(const void* const* inputs, float scalar, int64_t count, void* out) {
  Multiversion([=]() ZG_VERSION {
    const T* const x = static_cast<const T*>(inputs[0]);
    T* const y = static_cast<T*>(out);
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      y[i] = FromF32<T>(Evaluate(kCode, ToF32(x[i]), 0.0f, scalar));
    }
  });
}

template <ElementwiseCode kCode, typename T>
void RunBinary(const void* const* inputs, float scalar, int64_t count, void* out) {
  Multiversion([=]() ZG_VERSION {
    const T* const a = static_cast<const T*>(inputs[0]);
    const T* const b = static_cast<const T*>(inputs[1]);
    T* const y = static_cast<T*>(out);
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      y[i] = FromF32<T>(Evaluate(kCode, ToF32(a[i]), ToF32(b[i]), scalar));
    }
  });
}

struct Functions {
  ElementwiseFunction f32;
  ElementwiseFunction bf16;
  ElementwiseFunction f16;
};

template <ElementwiseCode kCode>
constexpr Functions Unary() {
  return {RunUnary<kCode, float>, RunUnary<kCode, BFloat16>, RunUnary<kCode, Float16>};
}
template <ElementwiseCode kCode>
constexpr Functions Binary() {
  return {RunBinary<kCode, float>, RunBinary<kCode, BFloat16>, RunBinary<kCode, Float16>};
}

constexpr Functions kFunctions[] = {
#define ZG_UNARY(Name, ...) Unary<ElementwiseCode::k##Name>(),
#define ZG_UNARY_WITH(Name, ...) Unary<ElementwiseCode::k##Name>(),
#define ZG_BINARY(Name, ...) Binary<ElementwiseCode::k##Name>(),
#define ZG_BINARY_WITH(Name, ...) Binary<ElementwiseCode::k##Name>(),
#include "framework/ops/elementwise.inc"
};

}  // namespace

ElementwiseFunction FunctionOf(ElementwiseCode code, DType dtype) {
  const Functions& functions = kFunctions[static_cast<int32_t>(code)];
  switch (dtype) {
    case DType::kBF16:
      return functions.bf16;
    case DType::kF16:
      return functions.f16;
    default:
      return functions.f32;
  }
}

}  // namespace zg
