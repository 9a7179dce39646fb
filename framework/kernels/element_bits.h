// A number as an element of a dtype, for kernels that move elements without computing.
#pragma once

#include <cstdint>
#include <cstring>

#include "framework/tensor/half.h"

namespace zg {

// The bits of `value`, rounded to the dtype.
inline uint64_t ElementBits(DType dtype, double value) {
  const float narrow = static_cast<float>(value);
  uint64_t bits = 0;
  switch (dtype) {
    case DType::kF32:
      std::memcpy(&bits, &narrow, sizeof(narrow));
      return bits;
    case DType::kBF16:
      return FromF32<BFloat16>(narrow).bits;
    case DType::kF16:
      return FromF32<Float16>(narrow).bits;
    case DType::kBool:
      return value != 0.0 ? 1 : 0;
    default:
      return static_cast<uint64_t>(static_cast<int64_t>(value));
  }
}

}  // namespace zg
