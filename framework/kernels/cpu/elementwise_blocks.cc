#include "framework/kernels/cpu/elementwise_blocks.h"

#include <algorithm>
#include <type_traits>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/prefetch.h"
#include "framework/kernels/math/elementwise_math.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// The functions of angles have a form for near ones alone, with the same bits, in which loops have no
// branch.
template <typename T>
ZG_INLINE bool AreNearAngles(const T* x, int64_t count) {
  int32_t num_far = 0;
  for (int64_t i = 0; i < count; ++i) {
    num_far += static_cast<int32_t>(!(elementwise::Abs(ToF32(x[i])) < elementwise::kFarAngle));
  }
  return num_far == 0;
}
template <ElementwiseCode kCode>
ZG_INLINE float OfNearAngle(float x) {
  return kCode == ElementwiseCode::kSin ? elementwise::NearSin(x) : elementwise::NearCos(x);
}

// y[k] for k < count from elements begin + k of the inputs. `y` becomes `out`, at once or later, from
// element `begin` on.
template <ElementwiseCode kCode, typename T>
void Compute(const void* const* inputs, int64_t begin, float scalar, int64_t count, T* out,
             float* y) {
  Multiversion([=]() ZG_VERSION {
    constexpr int kNumInputs = RowOf(kCode).num_inputs;
    const T* const a = static_cast<const T*>(inputs[0]) + begin;
    const T* const b = static_cast<const T*>(inputs[kNumInputs - 1]) + begin;
    for (int64_t run = 0; run < count; run += kPrefetchRun) {
      const int64_t size = std::min(kPrefetchRun, count - run);
      PrefetchRow<0>(a + run + kPrefetchAhead, size);
      if (kNumInputs > 1) PrefetchRow<0>(b + run + kPrefetchAhead, size);
      PrefetchRow<1>(out + begin + run + kPrefetchAhead, size);
      const T* const first = a + run;
      const T* const second = b + run;
      float* const to = y + run;
      if constexpr (kCode == ElementwiseCode::kSin || kCode == ElementwiseCode::kCos) {
        if (AreNearAngles(first, size)) {
          ZG_INDEPENDENT
          for (int64_t i = 0; i < size; ++i) to[i] = OfNearAngle<kCode>(ToF32(first[i]));
          continue;
        }
      }
      ZG_INDEPENDENT
      for (int64_t i = 0; i < size; ++i) {
        to[i] = Evaluate(kCode, ToF32(first[i]), ToF32(second[i]), scalar);
      }
    }
  });
}

template <ElementwiseCode kCode>
void Run(const void* const* inputs, float scalar, int64_t count, void* out) {
  float* const y = static_cast<float*>(out);
  Compute<kCode, float>(inputs, 0, scalar, count, y, y);
}

// Rounds in a loop of its own: in the loop of the formula, GCC 12 moves selections behind the
// rounding, which it then does for each of their cases, or makes branches of them.
template <ElementwiseCode kCode, typename T>
void RunRounded(const void* const* inputs, float scalar, int64_t count, void* out) {
  constexpr DType kDType = std::is_same_v<T, BFloat16> ? DType::kBF16 : DType::kF16;
  constexpr int64_t kPart = 1024;
  alignas(64) float block[kPart];
  T* const y = static_cast<T*>(out);
  for (int64_t begin = 0; begin < count; begin += kPart) {
    const int64_t part = std::min(kPart, count - begin);
    Compute<kCode, T>(inputs, begin, scalar, part, y, block);
    ConvertFloats(DType::kF32, block, kDType, y + begin, part);
  }
}

struct Functions {
  ElementwiseFunction f32;
  ElementwiseFunction bf16;
  ElementwiseFunction f16;
};

template <ElementwiseCode kCode>
constexpr Functions FunctionsOf() {
  return {Run<kCode>, RunRounded<kCode, BFloat16>, RunRounded<kCode, Float16>};
}

constexpr Functions kFunctions[] = {
#define ZG_UNARY(Name, ...) FunctionsOf<ElementwiseCode::k##Name>(),
#define ZG_UNARY_WITH(Name, ...) FunctionsOf<ElementwiseCode::k##Name>(),
#define ZG_BINARY(Name, ...) FunctionsOf<ElementwiseCode::k##Name>(),
#define ZG_BINARY_WITH(Name, ...) FunctionsOf<ElementwiseCode::k##Name>(),
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
