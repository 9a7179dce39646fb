#include "framework/comm/left_fold.h"

#include <algorithm>
#include <cstring>

#include "framework/base/check.h"
#include "framework/tensor/half.h"

// Highway compiles the part up to HWY_AFTER_NAMESPACE once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/comm/left_fold.cc"  // NOLINT
#include <hwy/foreach_target.h>
// foreach_target.h must be included first.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "framework/base/instruction_set.h"

HWY_BEFORE_NAMESPACE();
namespace zg::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Folds kNum inputs in one pass. It uses ordinary stores: non-temporal ones were slower, in place
// and out of place, from 1 MB to 320 MB. Prefetching gains 5 to 20 % once the buffers do not fit
// into a cache.
template <int kNum, typename T>
void FoldFixed(const T* const* inputs, int64_t elements, T* output) {
  constexpr int64_t kPrefetchElements = 2048 / sizeof(T);
  const hn::ScalableTag<T> vector;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(vector));
  const T* in[kNum];
  std::copy(inputs, inputs + kNum, in);
  int64_t i = 0;
  for (; i + lanes <= elements; i += lanes) {
    for (int k = 0; k < kNum; ++k) hwy::Prefetch(in[k] + i + kPrefetchElements);
    hwy::Prefetch(output + i + kPrefetchElements);
    auto sum = hn::LoadU(vector, in[0] + i);
    for (int k = 1; k < kNum; ++k) sum = hn::Add(sum, hn::LoadU(vector, in[k] + i));
    hn::StoreU(sum, vector, output + i);
  }
  for (; i < elements; ++i) {
    T sum = in[0][i];
    for (int k = 1; k < kNum; ++k) sum += in[k][i];
    output[i] = sum;
  }
}

template <typename T>
void FoldUpToEight(const T* const* inputs, int num_inputs, int64_t elements, T* output) {
  switch (num_inputs) {
    case 1:
      std::memmove(output, inputs[0], elements * sizeof(T));
      return;
    case 2:
      return FoldFixed<2>(inputs, elements, output);
    case 3:
      return FoldFixed<3>(inputs, elements, output);
    case 4:
      return FoldFixed<4>(inputs, elements, output);
    case 5:
      return FoldFixed<5>(inputs, elements, output);
    case 6:
      return FoldFixed<6>(inputs, elements, output);
    case 7:
      return FoldFixed<7>(inputs, elements, output);
    default:
      return FoldFixed<8>(inputs, elements, output);
  }
}

// Many inputs: block by block, with the running sum of a block in the L1 cache.
template <typename T>
void FoldMany(const T* const* inputs, int num_inputs, int64_t elements, T* output) {
  constexpr int64_t kBlockElements = 8192 / sizeof(T);
  constexpr int kGroup = 8;
  alignas(64) T sum[kBlockElements];
  for (int64_t begin = 0; begin < elements; begin += kBlockElements) {
    const int64_t count = std::min(kBlockElements, elements - begin);
    const T* group[kGroup];
    int num_in_group = 0;
    for (int next = 0; next < num_inputs;) {
      while (num_in_group < kGroup && next < num_inputs) {
        group[num_in_group++] = inputs[next++] + begin;
      }
      FoldUpToEight(group, num_in_group, count, next < num_inputs ? sum : output + begin);
      group[0] = sum;
      num_in_group = 1;
    }
  }
}

template <typename T>
void Fold(const void* const* untyped_inputs, int num_inputs, int64_t elements, void* output) {
  const auto inputs = reinterpret_cast<const T* const*>(untyped_inputs);
  if (num_inputs <= 8) {
    return FoldUpToEight(inputs, num_inputs, elements, static_cast<T*>(output));
  }
  FoldMany(inputs, num_inputs, elements, static_cast<T*>(output));
}

// 16-bit terms: block by block, with the running sum of a block in f32 in the L1 cache.
template <typename Term, typename Sum>
void FoldHalf(bool continues, const void* const* inputs, int num_inputs, int64_t elements,
              void* output) {
  constexpr int64_t kBlockElements = 2048;
  alignas(64) float sum[kBlockElements];
  for (int64_t begin = 0; begin < elements; begin += kBlockElements) {
    const int64_t count = std::min(kBlockElements, elements - begin);
    if (continues) {
      std::copy_n(static_cast<const float*>(inputs[0]) + begin, count, sum);
    } else {
      const Term* const first = static_cast<const Term*>(inputs[0]) + begin;
      for (int64_t i = 0; i < count; ++i) sum[i] = ToF32(first[i]);
    }
    for (int k = 1; k < num_inputs; ++k) {
      const Term* const term = static_cast<const Term*>(inputs[k]) + begin;
      for (int64_t i = 0; i < count; ++i) sum[i] += ToF32(term[i]);
    }
    Sum* const out = static_cast<Sum*>(output) + begin;
    for (int64_t i = 0; i < count; ++i) out[i] = FromF32<Sum>(sum[i]);
  }
}

void LeftFoldImpl(ReductionTypes types, bool continues, const void* const* inputs, int num_inputs,
                  int64_t elements, void* output) {
  switch (types.terms) {
    case DType::kF32:
      return Fold<float>(inputs, num_inputs, elements, output);
    case DType::kI64:
      return Fold<int64_t>(inputs, num_inputs, elements, output);
    case DType::kBF16:
      return types.sum == DType::kF32
                 ? FoldHalf<BFloat16, float>(continues, inputs, num_inputs, elements, output)
                 : FoldHalf<BFloat16, BFloat16>(continues, inputs, num_inputs, elements, output);
    case DType::kF16:
      return types.sum == DType::kF32
                 ? FoldHalf<Float16, float>(continues, inputs, num_inputs, elements, output)
                 : FoldHalf<Float16, Float16>(continues, inputs, num_inputs, elements, output);
    default:
      ZG_CHECK(false, "no sum over ranks in {}", DTypeName(types.terms));
  }
}

}  // namespace zg::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zg {

HWY_EXPORT(LeftFoldImpl);

void LeftFold(ReductionTypes types, bool continues, const void* const* inputs, int num_inputs,
              int64_t elements, void* output) {
  ZG_CHECK(num_inputs >= 1 && elements >= 0, "{} inputs, {} elements", num_inputs, elements);
  if (elements == 0) return;  // Empty buffers may be null.
  ZG_HWY_DISPATCH(LeftFoldImpl)(types, continues, inputs, num_inputs, elements, output);
}

}  // namespace zg
#endif  // HWY_ONCE
