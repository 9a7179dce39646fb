// Exp and Log for loops that the compiler vectorises: branch-free, exactly rounded basic
// operations only, so that the same argument gives the same bits in every lane and on every
// instruction set. T is float or Lanes. NaN in, NaN out.
//
// Source: the argument reductions and polynomials of Cephes' expf and logf (S. Moshier).
#pragma once

#include <cstdint>
#include <cstring>

#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"

namespace zg {

// The integers that have as many bits as T.
template <typename T>
struct IntegersOf;
template <>
struct IntegersOf<float> {
  using Unsigned = uint32_t;
  using Signed = int32_t;
};
template <>
struct IntegersOf<Lanes> {
  using Unsigned = UnsignedLanes;
  using Signed = SignedLanes;
};

template <typename To, typename From>
ZG_INLINE To BitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

// e^x with a relative error below 1.1e-7 (1.7 units in the last place). Below -87.33 (where results
// would be denormal) 0, above 88.37 the result for 88.37, 2.4e38.
template <typename T>
ZG_INLINE T Exp(T x) {
  using Unsigned = typename IntegersOf<T>::Unsigned;
  const T clamped = x > 88.37f ? T{} + 88.37f : x;
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the lowest bits.
  const T shifted = clamped * 1.44269504088896341f + 12582912.0f;
  const T n = shifted - 12582912.0f;
  const T r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;  // x - n ln 2
  T y = r * 1.9875691500e-4f + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = (y * (r * r) + r) + 1.0f;
  const Unsigned power = (BitCast<Unsigned>(shifted) << 23) + 0x3f800000u;  // the bits of 2^n
  const T result = y * BitCast<T>(power);
  return x < -87.33f ? T{} : result;
}

// ln(x) for normal x > 0, with a relative error below 1.2e-7.
template <typename T>
ZG_INLINE T Log(T x) {
  using Unsigned = typename IntegersOf<T>::Unsigned;
  using Signed = typename IntegersOf<T>::Signed;
  // x = m * 2^exponent with m in [sqrt(1/2), sqrt(2)).
  const Unsigned bits = BitCast<Unsigned>(x);
  const Unsigned above = bits - 0x3f3504f3u;
  const Unsigned exponent = BitCast<Unsigned>(BitCast<Signed>(above) >> 23);
  const T f = BitCast<T>(bits - (above & 0xff800000u)) - 1.0f;
  const T e = BitCast<T>(exponent + 0x4b400000u) - 12582912.0f;
  const T square = f * f;
  T y = f * 7.0376836292e-2f - 1.1514610310e-1f;
  y = y * f + 1.1676998740e-1f;
  y = y * f - 1.2420140846e-1f;
  y = y * f + 1.4249322787e-1f;
  y = y * f - 1.6668057665e-1f;
  y = y * f + 2.0000714765e-1f;
  y = y * f - 2.4999993993e-1f;
  y = y * f + 3.3333331174e-1f;
  y = (y * f) * square;
  y = y - e * 2.12194440e-4f;
  y = y - square * 0.5f;
  return (f + y) + e * 0.693359375f;
}

}  // namespace zg
