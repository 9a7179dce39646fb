// Conversions between f32 and 16 bits by the device's instructions, because memory-bound kernels do
// one for every element. The same numbers as tensor/half.h; a NaN stays a NaN, with other bits.
#pragma once

#include <cstdint>

#include "framework/tensor/half.h"

namespace zg::cuda {

__device__ inline float Widen(float value) { return value; }
__device__ inline float Widen(BFloat16 value) { return ToF32(value); }
__device__ inline float Widen(Float16 value) {
#if defined(__CUDA_ARCH__)
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
  return wide;
#else
  return ToF32(value);
#endif
}

template <typename T>
__device__ inline T Round(float value) {
  return FromF32<T>(value);
}
template <>
__device__ inline BFloat16 Round<BFloat16>(float value) {
#if defined(__CUDA_ARCH__)
  BFloat16 rounded;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(value));
  return rounded;
#else
  return FromF32<BFloat16>(value);
#endif
}
template <>
__device__ inline Float16 Round<Float16>(float value) {
#if defined(__CUDA_ARCH__)
  Float16 rounded;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(value));
  return rounded;
#else
  return FromF32<Float16>(value);
#endif
}

// Two numbers, rounded in one instruction; the first in the lower half.
__device__ inline uint32_t PackPair(BFloat16, float low, float high) {
#if defined(__CUDA_ARCH__)
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return FromF32<BFloat16>(low).bits | static_cast<uint32_t>(FromF32<BFloat16>(high).bits) << 16;
#endif
}
__device__ inline uint32_t PackPair(Float16, float low, float high) {
#if defined(__CUDA_ARCH__)
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return FromF32<Float16>(low).bits | static_cast<uint32_t>(FromF32<Float16>(high).bits) << 16;
#endif
}

}  // namespace zg::cuda
