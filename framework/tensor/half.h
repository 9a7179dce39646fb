// The 16-bit floating-point types in memory, and their conversion from and to f32: to the nearest,
// ties to even, as IEEE 754 asks for f16 (binary16) and as every bf16 hardware does. They are
// branch-free, so loops over them become vector code with the same bits on every instruction set.
#pragma once

#include <cstdint>
#include <cstring>

#include "framework/base/host_device.h"
#include "framework/tensor/dtype.h"

namespace zg {

struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

namespace half_internal {
ZG_HOST_DEVICE ZG_INLINE uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
ZG_HOST_DEVICE ZG_INLINE float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
}  // namespace half_internal

ZG_HOST_DEVICE ZG_INLINE float ToF32(float value) { return value; }

ZG_HOST_DEVICE ZG_INLINE float ToF32(BFloat16 value) {
  return half_internal::FromBits(static_cast<uint32_t>(value.bits) << 16);
}

ZG_HOST_DEVICE ZG_INLINE float ToF32(Float16 value) {
  const uint32_t magnitude = static_cast<uint32_t>(value.bits & 0x7fff) << 13;
  // 2^112 moves the exponent's bias from 15 to 127, denormal numbers included.
  const uint32_t finite = half_internal::BitsOf(half_internal::FromBits(magnitude) * 0x1p112f);
  const uint32_t not_finite = magnitude | 0x7f800000u;
  const uint32_t result = magnitude >= 0x0f800000u ? not_finite : finite;
  return half_internal::FromBits(result | static_cast<uint32_t>(value.bits & 0x8000) << 16);
}

template <typename T>
ZG_HOST_DEVICE T FromF32(float value);

template <>
ZG_HOST_DEVICE ZG_INLINE float FromF32<float>(float value) {
  return value;
}

template <>
ZG_HOST_DEVICE ZG_INLINE BFloat16 FromF32<BFloat16>(float value) {
  const uint32_t bits = half_internal::BitsOf(value);
  // The addend rounds a number, and makes a NaN quiet.
  const uint32_t half_to_even = 0x7fffu + ((bits >> 16) & 1u);
  const uint32_t quiet_bit = ~bits & 0x400000u;
  return {static_cast<uint16_t>((bits + (value == value ? half_to_even : quiet_bit)) >> 16)};
}

template <>
ZG_HOST_DEVICE ZG_INLINE Float16 FromF32<Float16>(float value) {
  const uint32_t bits = half_internal::BitsOf(value);
  const uint32_t sign = bits & 0x80000000u;
  const uint32_t magnitude = bits ^ sign;
  // From 2^-14 on: rounds the mantissa and moves the bias; may carry into infinity, 0x7c00.
  const uint32_t normal = (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> 13;
  // Below: adding 0.5 leaves multiples of 2^-24, the smallest denormal number, in the lowest bits.
  const uint32_t denormal =
      half_internal::BitsOf(half_internal::FromBits(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t result = magnitude < 0x38800000u ? denormal : normal;
  result = magnitude >= 0x47800000u ? 0x7c00u : result;
  result = magnitude > 0x7f800000u ? 0x7e00u : result;
  return {static_cast<uint16_t>(result | sign >> 16)};
}

// Calls f with a zero of the C++ type of a floating-point dtype: f(float()), f(BFloat16()) or
// f(Float16()).
template <typename F>
decltype(auto) WithFloatType(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kBF16:
      return f(BFloat16());
    case DType::kF16:
      return f(Float16());
    default:
      return f(float());
  }
}

}  // namespace zg
