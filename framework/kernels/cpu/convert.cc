#include "framework/kernels/cpu/convert.h"

#include <algorithm>
#include <cstring>

#include "framework/kernels/cpu/multiversion.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

template <typename T>
void Widen(const T* source, float* target, int64_t count) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) target[i] = ToF32(source[i]);
  });
}

// Rows are rounded one by one: inside a loop over rows, GCC 12 makes branches of the selections in
// the rounding to f16.
template <typename T>
void Round(const float* source, T* target, int64_t count) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) target[i] = FromF32<T>(source[i]);
  });
}

template <typename T>
void RoundRowsTo(const float* source, int64_t source_stride, int64_t rows, int64_t columns,
                 T* target, int64_t target_stride) {
  for (int64_t row = 0; row < rows; ++row) {
    Round(source + row * source_stride, target + row * target_stride, columns);
  }
}

template <typename T>
void Add(const T* source, int64_t count, T* target) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      target[i] = FromF32<T>(ToF32(target[i]) + ToF32(source[i]));
    }
  });
}

template <typename T>
ZG_INLINE void RoundInPlace(float* values, int64_t count) {
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) values[i] = ToF32(FromF32<T>(values[i]));
}
void RoundToBFloat16(float* values, int64_t count) {
  Multiversion([=]() ZG_VERSION { RoundInPlace<BFloat16>(values, count); });
}
void RoundToFloat16(float* values, int64_t count) {
  Multiversion([=]() ZG_VERSION { RoundInPlace<Float16>(values, count); });
}

void WidenAny(DType from, const void* source, float* target, int64_t count) {
  if (from == DType::kBF16) {
    Widen(static_cast<const BFloat16*>(source), target, count);
  } else {
    Widen(static_cast<const Float16*>(source), target, count);
  }
}

void RoundAny(const float* source, DType to, void* target, int64_t count) {
  RoundRows(source, count, 1, count, to, target, count);
}

}  // namespace

void ConvertFloats(DType from, const void* source, DType to, void* target, int64_t count) {
  if (count == 0) return;  // empty arrays may be null
  if (from == to) {
    std::memcpy(target, source, count * SizeOf(from));
  } else if (to == DType::kF32) {
    WidenAny(from, source, static_cast<float*>(target), count);
  } else if (from == DType::kF32) {
    RoundAny(static_cast<const float*>(source), to, target, count);
  } else {
    constexpr int64_t kBlock = 1024;
    float block[kBlock];
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t part = std::min(kBlock, count - begin);
      WidenAny(from, static_cast<const char*>(source) + begin * SizeOf(from), block, part);
      RoundAny(block, to, static_cast<char*>(target) + begin * SizeOf(to), part);
    }
  }
}

void RoundRows(const float* source, int64_t source_stride, int64_t rows, int64_t columns, DType to,
               void* target, int64_t target_stride) {
  if (to == DType::kBF16) {
    RoundRowsTo(source, source_stride, rows, columns, static_cast<BFloat16*>(target),
                target_stride);
  } else {
    RoundRowsTo(source, source_stride, rows, columns, static_cast<Float16*>(target), target_stride);
  }
}

void AddRows(DType dtype, const void* source, int64_t rows, int64_t columns, int64_t stride,
             void* target) {
  WithFloatType(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t begin = row * stride;
      Add(static_cast<const T*>(source) + begin, columns, static_cast<T*>(target) + begin);
    }
  });
}

void RoundFloats(DType dtype, float* values, int64_t count) {
  if (dtype == DType::kBF16) RoundToBFloat16(values, count);
  if (dtype == DType::kF16) RoundToFloat16(values, count);
}

}  // namespace zg
