// Exp and Log for loops that the compiler vectorises: they are branch-free and use only exactly
// rounded basic operations, so the same argument gives the same bits in every lane and on every
// instruction set. NaN in, NaN out.
//
// There are two arithmetics. Fused rounds a b + c once, which is faster and more precise: every
// processor with AVX2 has an instruction for it, and an older one calls a function. Rounded, which
// rounds the product first, is that of losses, attention and the gates (GELU, SiLU): a change would
// change the bits of models trained so far.
//
// Source: the argument reductions and polynomials of Cephes' expf and logf (S. Moshier).
#pragma once

#include <cmath>
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

struct Rounded {
  ZG_HOST_DEVICE static ZG_INLINE float MulAdd(float a, float b, float c) { return a * b + c; }
};
struct Fused {
  ZG_HOST_DEVICE static ZG_INLINE float MulAdd(float a, float b, float c) { return fmaf(a, b, c); }
  ZG_HOST_DEVICE static ZG_INLINE double MulAdd(double a, double b, double c) {
    return fma(a, b, c);
  }
};

// The polynomial of these coefficients, from that of the highest power on, by Horner's rule.
template <typename Arithmetic, typename Number>
ZG_HOST_DEVICE ZG_INLINE Number Polynomial(Number /*x*/, Number constant) {
  return constant;
}
template <typename Arithmetic, typename Number, typename... Numbers>
ZG_HOST_DEVICE ZG_INLINE Number Polynomial(Number x, Number highest, Number next, Numbers... rest) {
  return Polynomial<Arithmetic>(x, Arithmetic::MulAdd(highest, x, next), rest...);
}

// 2^n for -127 < n < 128; only the lowest 9 bits of n are read.
ZG_HOST_DEVICE ZG_INLINE float PowerOfTwo(uint32_t n) {
  return BitCast<float>((n << 23) + 0x3f800000u);
}

// e^x = (excess + 1) 2^n for |x| < 10^6, where excess = e^r - 1, r = x - n ln 2, |r| <= ln(2) / 2.
struct ScaledExp {
  static constexpr uint32_t kMagic = 0x4b400000u;  // the bits of 1.5 * 2^23: zeros from bit 0 on

  float excess;
  uint32_t n_and_magic;  // n + kMagic

  ZG_HOST_DEVICE ZG_INLINE float Value() const { return (excess + 1.0f) * PowerOfTwo(n_and_magic); }
};
template <typename Arithmetic>
ZG_HOST_DEVICE ZG_INLINE ScaledExp ScaledExpOf(float x) {
  // Adding 1.5 * 2^23 rounds to an integer, which is then in the lowest bits.
  const float shifted = Arithmetic::MulAdd(x, 1.44269504088896341f, 12582912.0f);
  const float n = shifted - 12582912.0f;
  const float high = Arithmetic::MulAdd(n, -0.693359375f, x);
  const float r = Arithmetic::MulAdd(n, 2.12194440e-4f, high);
  const float y = Polynomial<Arithmetic>(r, 1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                         4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f);
  return {Arithmetic::MulAdd(y, r * r, r), BitCast<uint32_t>(shifted)};
}

// e^x with a relative error below 1.1e-7 (1.7 units in the last place). It is 0 below -87.33 (where
// results would be denormal), and the result for 88.37, 2.4e38, above 88.37.
ZG_HOST_DEVICE ZG_INLINE float Exp(float x) {
  const float result = ScaledExpOf<Rounded>(x > 88.37f ? 88.37f : x).Value();
  return x < -87.33f ? 0.0f : result;
}

// Exp(x) for x <= 88.37, in Fused.
ZG_HOST_DEVICE ZG_INLINE float ExpOfNotHigh(float x) {
  const float result = ScaledExpOf<Fused>(x).Value();
  return x < -87.33f ? 0.0f : result;
}

// ln(x) for normal x > 0 and infinity, with a relative error below 1.2e-7.
template <typename Arithmetic = Rounded>
ZG_HOST_DEVICE ZG_INLINE float Log(float x) {
  // x = m * 2^exponent with m in [sqrt(1/2), sqrt(2)).
  const uint32_t bits = BitCast<uint32_t>(x);
  const uint32_t above = bits - 0x3f3504f3u;
  const int32_t exponent = BitCast<int32_t>(above) >> 23;
  const float f = BitCast<float>(bits - (above & 0xff800000u)) - 1.0f;
  const float e = static_cast<float>(exponent);
  const float square = f * f;
  float y = Polynomial<Arithmetic>(f, 7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f,
                                   -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                                   2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f);
  y = Arithmetic::MulAdd(e, -2.12194440e-4f, (y * f) * square);
  y = Arithmetic::MulAdd(square, -0.5f, y);
  y = Arithmetic::MulAdd(e, 0.693359375f, f + y);
  return x < __builtin_inff() ? y : x;  // infinity and NaN
}

}  // namespace zg
