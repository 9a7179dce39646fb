// Exp and Log for loops that the compiler vectorises: they are branch-free and use only exactly
// rounded basic operations, so the same argument gives the same bits in every lane and on every
// instruction set. NaN in, NaN out.
//
// Source: the argument reductions and polynomials of Cephes' expf and logf (S. Moshier).
#pragma once

#include <cstdint>
#include <cstring>

#include "framework/base/host_device.h"

namespace zg {

template <typename To, typename From>
ZG_HOST_DEVICE ZG_INLINE To BitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

// Exp(x) for x >= -87.33.
ZG_HOST_DEVICE ZG_INLINE float ExpOfNotLow(float x) {
  const float clamped = x > 88.37f ? 88.37f : x;
  // Adding 1.5 * 2^23 rounds to an integer, which is then in the lowest bits.
  const float shifted = clamped * 1.44269504088896341f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;  // x - n ln 2
  float y = r * 1.9875691500e-4f + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = (y * (r * r) + r) + 1.0f;
  const uint32_t power = (BitCast<uint32_t>(shifted) << 23) + 0x3f800000u;  // the bits of 2^n
  return y * BitCast<float>(power);
}

// e^x with a relative error below 1.1e-7 (1.7 units in the last place). It is 0 below -87.33 (where
// results would be denormal), and the result for 88.37, 2.4e38, above 88.37.
ZG_HOST_DEVICE ZG_INLINE float Exp(float x) {
  const float result = ExpOfNotLow(x);
  return x < -87.33f ? 0.0f : result;
}

// ln(x) for normal x > 0, with a relative error below 1.2e-7.
ZG_HOST_DEVICE ZG_INLINE float Log(float x) {
  // x = m * 2^exponent with m in [sqrt(1/2), sqrt(2)).
  const uint32_t bits = BitCast<uint32_t>(x);
  const uint32_t above = bits - 0x3f3504f3u;
  const int32_t exponent = BitCast<int32_t>(above) >> 23;
  const float f = BitCast<float>(bits - (above & 0xff800000u)) - 1.0f;
  const float e = static_cast<float>(exponent);
  const float square = f * f;
  float y = f * 7.0376836292e-2f - 1.1514610310e-1f;
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
