// Elements of every dtype that kernels compute with: f32, bf16, f16, i64 and bool. Conversion of an
// element to another dtype, and comparison of two elements of one dtype.
#pragma once

#include <cstdint>

#include "framework/base/host_device.h"
#include "framework/tensor/half.h"

namespace zg {

// An element of bool.
struct Truth {
  uint8_t byte;
};

// Calls f with a zero of the C++ type of a dtype: f(float()), f(BFloat16()), f(Float16()),
// f(int64_t()) or f(Truth()).
template <typename F>
decltype(auto) WithAnyType(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kI64:
      return f(int64_t{0});
    case DType::kBool:
      return f(Truth{0});
    default:
      return WithFloatType(dtype, f);
  }
}

// The type in which comparisons and conversions compute.
ZG_HOST_DEVICE ZG_INLINE float NumberOf(float x) { return x; }
ZG_HOST_DEVICE ZG_INLINE float NumberOf(BFloat16 x) { return ToF32(x); }
ZG_HOST_DEVICE ZG_INLINE float NumberOf(Float16 x) { return ToF32(x); }
ZG_HOST_DEVICE ZG_INLINE int64_t NumberOf(int64_t x) { return x; }
ZG_HOST_DEVICE ZG_INLINE uint8_t NumberOf(Truth x) { return static_cast<uint8_t>(x.byte != 0); }

// To a floating-point type: rounded to the nearest; to bool: whether it is not 0.
template <typename To>
struct ElementFrom {
  template <typename Number>
  ZG_HOST_DEVICE static ZG_INLINE To Of(Number x) {
    return FromF32<To>(static_cast<float>(x));
  }
};
template <>
struct ElementFrom<Truth> {
  template <typename Number>
  ZG_HOST_DEVICE static ZG_INLINE Truth Of(Number x) {
    return {static_cast<uint8_t>(x != Number{0})};
  }
};
// Rounds towards 0; a number out of i64's range becomes the nearest one, and NaN becomes 0.
template <>
struct ElementFrom<int64_t> {
  template <typename Number>
  ZG_HOST_DEVICE static ZG_INLINE int64_t Of(Number x) {
    return static_cast<int64_t>(x);
  }
  ZG_HOST_DEVICE static ZG_INLINE int64_t Of(float x) {
    const float bounded = x >= -0x1p63f ? x : x == x ? -0x1p63f : 0.0f;
    return bounded < 0x1p63f ? static_cast<int64_t>(bounded) : INT64_MAX;
  }
};

enum class Comparison {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kBoth,    // of bools: a and b
  kEither,  // a or b
};

template <typename Number>
ZG_HOST_DEVICE ZG_INLINE bool Holds(Comparison comparison, Number a, Number b) {
  switch (comparison) {
    case Comparison::kEqual:
      return a == b;
    case Comparison::kNotEqual:
      return a != b;
    case Comparison::kLess:
      return a < b;
    case Comparison::kLessEqual:
      return a <= b;
    case Comparison::kGreater:
      return a > b;
    case Comparison::kGreaterEqual:
      return a >= b;
    case Comparison::kBoth:
      return a != Number{0} && b != Number{0};
    case Comparison::kEither:
      return a != Number{0} || b != Number{0};
  }
  return false;
}

}  // namespace zg
