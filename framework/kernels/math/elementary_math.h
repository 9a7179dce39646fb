// Functions of one element, as kernels of all devices compute them, for loops that the compiler
// vectorises (vector_math.h).
#pragma once

#include <cmath>
#include <cstdint>

#include "framework/base/host_device.h"
#include "framework/kernels/math/vector_math.h"

namespace zg {

namespace elementwise {

// x or 0, by a mask, where GCC could make branches of a selection. For the same reason conditions
// are joined by | and &.
ZG_HOST_DEVICE ZG_INLINE float KeepIf(bool keep, float x) {
  return BitCast<float>(BitCast<uint32_t>(x) & -static_cast<uint32_t>(keep));
}

ZG_HOST_DEVICE ZG_INLINE float Relu(float x) { return KeepIf(!(x < 0.0f), x); }  // NaN stays NaN

ZG_HOST_DEVICE ZG_INLINE float ReluGrad(float dy, float y) { return KeepIf(y > 0.0f, dy); }

// x or, where the functions below have long been 0 and their slopes 0 or 1, a bound, so that no product
// is infinite there. NaN stays NaN.
inline constexpr float kSaturated = 128.0f;
ZG_HOST_DEVICE ZG_INLINE float SaturatedBelow(float x) { return x < -kSaturated ? -kSaturated : x; }
ZG_HOST_DEVICE ZG_INLINE float Saturated(float x) {
  const float above = SaturatedBelow(x);
  return above > kSaturated ? kSaturated : above;
}

// The tanh form x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3), is x / (1 + e^(-2u)), which
// has no cancellation for negative x (Hendrycks and Gimpel, arXiv 1606.08415).
inline constexpr float kMinusTwoRootTwoOverPi = -1.5957691216057308f;
inline constexpr float kCubic = 0.044715f;

ZG_HOST_DEVICE ZG_INLINE float Gelu(float x) {
  const float e = Exp((x * kMinusTwoRootTwoOverPi) * (x * x * kCubic + 1.0f));
  return SaturatedBelow(x) / (1.0f + e);
}

// With e = e^(-2u) and s = 1 / (1 + e): d(x s)/dx = s + x s (1 - s) 2u', and s (1 - s) = e s s.
ZG_HOST_DEVICE ZG_INLINE float GeluGrad(float dy, float any_x) {
  const float x = Saturated(any_x);
  const float square = x * x;
  const float e = Exp((x * kMinusTwoRootTwoOverPi) * (square * kCubic + 1.0f));
  const float s = 1.0f / (1.0f + e);
  const float slope = square * (3.0f * kCubic * -kMinusTwoRootTwoOverPi) - kMinusTwoRootTwoOverPi;
  return dy * (s + (x * slope) * ((e * s) * s));
}

ZG_HOST_DEVICE ZG_INLINE float Silu(float x) { return SaturatedBelow(x) / (1.0f + Exp(-x)); }

// With e = e^(-x): s (1 - s) = e s s.
ZG_HOST_DEVICE ZG_INLINE float SiluGrad(float dy, float any_x) {
  const float x = Saturated(any_x);
  const float e = Exp(-x);
  const float s = 1.0f / (1.0f + e);
  return dy * (s + x * ((e * s) * s));
}

// The larger one; NaN if one of them is NaN. GCC makes no branches from a comparison that is false
// for NaN.
ZG_HOST_DEVICE ZG_INLINE float Maximum(float a, float b) {
  const float larger = a > b ? a : b;  // b if a is NaN
  return a == a ? larger : a;
}
ZG_HOST_DEVICE ZG_INLINE float Minimum(float a, float b) {
  const float smaller = a < b ? a : b;
  return a == a ? smaller : a;
}
ZG_HOST_DEVICE ZG_INLINE float ShareOfLarger(float a, float b) {
  return KeepIf(a > b, 1.0f) + KeepIf(a == b, 0.5f);
}

ZG_HOST_DEVICE ZG_INLINE float Abs(float x) {
  return BitCast<float>(BitCast<uint32_t>(x) & 0x7fffffffu);
}
ZG_HOST_DEVICE ZG_INLINE float CopySign(float magnitude, float sign) {
  const uint32_t bit = BitCast<uint32_t>(sign) & 0x80000000u;
  return BitCast<float>((BitCast<uint32_t>(magnitude) & 0x7fffffffu) | bit);
}
ZG_HOST_DEVICE ZG_INLINE float Sign(float x) {
  const float sign = KeepIf(x > 0.0f, 1.0f) - KeepIf(x < 0.0f, 1.0f);
  return x == x ? sign : x;
}

// A float of 2^23 or more has no digits after the point, so that adding 2^23 rounds.
ZG_HOST_DEVICE ZG_INLINE float RoundToEven(float x) {
  const float magnitude = Abs(x);
  const float rounded = (magnitude + 8388608.0f) - 8388608.0f;
  return CopySign(magnitude < 8388608.0f ? rounded : magnitude, x);
}
ZG_HOST_DEVICE ZG_INLINE float Floor(float x) {
  const float nearest = RoundToEven(x);
  return nearest - KeepIf(nearest > x, 1.0f);
}

ZG_HOST_DEVICE ZG_INLINE float Sqrt(float x) { return std::sqrt(x); }

// e^x for all x: denormal results and infinity come from two factors whose product is 2^n.
ZG_HOST_DEVICE ZG_INLINE float FullExp(float x) {
  const float below = x > 89.0f ? 89.0f : x;
  const ScaledExp e = ScaledExpOf<Fused>(below < -104.0f ? -104.0f : below);
  const uint32_t n = e.n_and_magic - ScaledExp::kMagic;
  const uint32_t half = static_cast<uint32_t>(BitCast<int32_t>(n) >> 1);
  return ((e.excess + 1.0f) * PowerOfTwo(half)) * PowerOfTwo(n - half);
}

// ln(x) for all x.
ZG_HOST_DEVICE ZG_INLINE float FullLog(float x) {
  const bool is_small = x < 1.1754944e-38f;  // denormal: made normal by 2^23
  float y = Log<Fused>(is_small ? x * 8388608.0f : x) - KeepIf(is_small, 15.942385f);
  y = x == 0.0f ? -__builtin_inff() : y;
  return x < 0.0f ? __builtin_nanf("") : y;
}

// ln(1 + x): that of the rounded sum, and, to first order, of what the rounding left out.
ZG_HOST_DEVICE ZG_INLINE float FullLog1p(float x) {
  const float sum = 1.0f + x;
  const float left_out = (x - (sum - 1.0f)) / sum;
  return FullLog(sum) + KeepIf((x > -1.0f) & (x < 16777216.0f), left_out);
}

// log2(x) of a normal x > 0 in double, with a relative error below 2^-37: by the series of atanh, its
// coefficients those of the polynomial whose largest error is smallest. Powers of x are evaluated in
// parallel (Estrin's scheme), because a long chain would take longer than the work.
ZG_HOST_DEVICE ZG_INLINE double Log2InDouble(float x) {
  const uint32_t bits = BitCast<uint32_t>(x);
  const uint32_t above = bits - 0x3f3504f3u;
  const int32_t exponent = BitCast<int32_t>(above) >> 23;
  const float m = BitCast<float>(bits - (above & 0xff800000u));
  // (m - 1) / (m + 1), |s| < 0.172: a quotient in f32 has half the bits, one step of Newton's the
  // others.
  const double numerator = static_cast<double>(m) - 1.0, denominator = static_cast<double>(m) + 1.0;
  const double inverse = static_cast<double>(1.0f / (m + 1.0f));
  const double quotient = numerator * inverse;
  const double s =
      Fused::MulAdd(Fused::MulAdd(-denominator, quotient, numerator), inverse, quotient);
  const double square = s * s;
  const double high = Fused::MulAdd(square * square, 0.11790737535007974,
                                    Fused::MulAdd(square, 0.14268673396267076, 0.200001672689197));
  const double low = Fused::MulAdd(square, 0.33333332824313516, 1.0);
  const double series = Fused::MulAdd(square * square, high, low);
  return Fused::MulAdd(series, s * 2.8853900817779268, static_cast<double>(exponent));
}

// 2^x for |x| <= 160 in double, with a relative error below 2^-34, likewise.
ZG_HOST_DEVICE ZG_INLINE double Exp2InDouble(double x) {
  const double shifted = x + 6755399441055744.0;
  const double r = x - (shifted - 6755399441055744.0);  // |r| <= 1/2
  const double square = r * r;
  const double first = Fused::MulAdd(r, 0.6931471807056947, 1.0);
  const double second = Fused::MulAdd(r, 0.055504103629728185, 0.24022651068780637);
  const double third = Fused::MulAdd(r, 0.0013333936572583595, 0.00961803776884895);
  const double fourth = Fused::MulAdd(r, 1.5196041595666476e-05, 0.0001546688255924822);
  const double high = Fused::MulAdd(square, fourth, third);
  const double y = Fused::MulAdd(square, Fused::MulAdd(square, high, second), first);
  return BitCast<double>(BitCast<uint64_t>(y) + (BitCast<uint64_t>(shifted) << 52));
}

// x, or the number of its sign and this magnitude.
ZG_HOST_DEVICE ZG_INLINE double WithinMagnitude(double x, double magnitude) {
  const uint64_t bits = BitCast<uint64_t>(x);
  const uint64_t own = bits & 0x7fffffffffffffffu, most = BitCast<uint64_t>(magnitude);
  return BitCast<double>((own < most ? own : most) | (bits & 0x8000000000000000u));
}

// a^b, like C's powf except for the sign of zeros; denormal a count as 0. In double, so that nearly
// all results are correctly rounded, and whole powers of whole numbers exact.
ZG_HOST_DEVICE ZG_INLINE float Pow(float a, float b) {
  const float magnitude = Abs(a);
  const bool is_zero = magnitude < 1.1754944e-38f;
  const bool is_infinite = magnitude > 3.4028235e38f;
  const double exponent = Log2InDouble(magnitude) * static_cast<double>(b);
  const float normal = static_cast<float>(Exp2InDouble(WithinMagnitude(exponent, 160.0)));
  const float at_ends = KeepIf((b > 0.0f) == is_infinite, __builtin_inff());
  float y = (is_zero | is_infinite) ? at_ends : normal;
  y = magnitude == 1.0f ? 1.0f : y;  // also for an infinite b
  // From 2^24 on all floats are even.
  const float bounded = KeepIf(Abs(b) < 16777216.0f, b);
  const int32_t whole = static_cast<int32_t>(bounded);
  const float signed_y =
      BitCast<float>(BitCast<uint32_t>(y) ^ (static_cast<uint32_t>(whole) << 31));
  const float of_others = is_infinite ? y : __builtin_nanf("");
  const float of_negative = static_cast<float>(whole) == bounded ? signed_y : of_others;
  y = ((a < 0.0f) & !is_zero) ? of_negative : y;
  y = ((a != a) | (b != b)) ? a + b : y;
  return ((b == 0.0f) | (a == 1.0f)) ? 1.0f : y;
}
ZG_HOST_DEVICE ZG_INLINE float PowSlope(float a, float b) {
  const float slope = b * Pow(a, b - 1.0f);
  return b == 0.0f ? 0.0f : slope;
}
ZG_HOST_DEVICE ZG_INLINE float PowExponentSlope(float power, float a) {
  const float slope = power * FullLog(a);
  const bool is_zero_to_zero = a == 0.0f && power == 1.0f;
  return power == 0.0f || is_zero_to_zero ? 0.0f : slope;
}

// c + ln(1 + e) for e in [0, 1]: e times the polynomial whose largest relative error is smallest,
// 4e-8.
ZG_HOST_DEVICE ZG_INLINE float Log1pPlus(float e, float c) {
  return Polynomial<Fused>(e, 5.364815705e-3f, -3.006576002e-2f, 7.920448482e-2f, -1.375379860e-1f,
                           1.915365309e-1f, -2.485716343e-1f, 3.332132399e-1f, -4.999964833e-1f,
                           1.0f, c);
}

// e^x - 1 for x <= 0, without cancellation near 0, where n is 0.
ZG_HOST_DEVICE ZG_INLINE float Expm1(float x) {
  const ScaledExp e = ScaledExpOf<Fused>(x < -30.0f ? -30.0f : x);
  const float power = PowerOfTwo(e.n_and_magic);
  return Fused::MulAdd(e.excess, power, power - 1.0f);
}

// e^x - 1 for all x. Half of it is computed, since 2^n itself may be too large.
ZG_HOST_DEVICE ZG_INLINE float FullExpm1(float x) {
  const float below = x > 89.0f ? 89.0f : x;
  const ScaledExp e = ScaledExpOf<Fused>(below < -30.0f ? -30.0f : below);
  const float half = PowerOfTwo(e.n_and_magic - 1u);
  return 2.0f * Fused::MulAdd(e.excess, half, half - 0.5f);
}

// The angle in [-tan(pi/8), tan(pi/8)] whose tangent is r. Source: Cephes' atanf.
ZG_HOST_DEVICE ZG_INLINE float SmallAngle(float r) {
  const float square = r * r;
  const float odd = Polynomial<Fused>(square, 8.05374449538e-2f, -1.38776856032e-1f,
                                      1.99777106478e-1f, -3.33329491539e-1f);
  return Fused::MulAdd(odd, square * r, r);
}

// Beyond tan(pi/8) the angle less pi/4 has the tangent (x - 1) / (x + 1), and beyond tan(3 pi/8) that
// less pi/2 has -1 / x.
ZG_HOST_DEVICE ZG_INLINE float Atan(float x) {
  const float magnitude = Abs(x);
  const bool is_beyond = magnitude > 0.41421356f, is_far = magnitude > 2.41421356f;
  float numerator = is_beyond ? magnitude - 1.0f : magnitude;
  float denominator = is_beyond ? magnitude + 1.0f : 1.0f;
  numerator = is_far ? -1.0f : numerator;
  denominator = is_far ? magnitude : denominator;
  const float start = KeepIf(is_beyond, 0.785398163f) + KeepIf(is_far, 0.785398163f);
  return CopySign(SmallAngle(numerator / denominator) + start, x);
}

// The angle of the point (x, y), in [-pi, pi], from the quotient of its smaller and its larger
// coordinate. They are halved, so that their sum is finite.
ZG_HOST_DEVICE ZG_INLINE float Atan2(float y, float x) {
  const float height = Abs(y), width = Abs(x);
  const bool is_steep = height > width;
  const float smaller = is_steep ? width : height;
  const float larger = is_steep ? height : width;
  const bool is_infinite = larger > 3.4028235e38f;
  const float low = is_infinite ? KeepIf(smaller > 3.4028235e38f, 1.0f) : smaller * 0.5f;
  const float high = (is_infinite | (larger == 0.0f)) ? 1.0f : larger * 0.5f;
  const bool is_beyond = low > 0.41421356f * high;
  const float numerator = is_beyond ? low - high : low;
  const float denominator = is_beyond ? low + high : high;
  float angle = SmallAngle(numerator / denominator) + KeepIf(is_beyond, 0.785398163f);
  angle = is_steep ? 1.57079633f - angle : angle;
  angle = BitCast<int32_t>(x) < 0 ? 3.14159265f - angle : angle;
  const float signed_angle = CopySign(angle, y);
  return ((x != x) | (y != y)) ? x + y : signed_angle;
}

// x / (x^2 + y^2), the slope of Atan2 in y, from quotients that are at most 1.
ZG_HOST_DEVICE ZG_INLINE float Atan2Slope(float y, float x) {
  const float height = Abs(y), width = Abs(x);
  const float larger = height > width ? height : width;
  const float unit = larger == 0.0f ? 1.0f : larger;
  const float a = y / unit, b = x / unit;
  const float slope = b / (a * a + b * b) / unit;
  return larger == 0.0f ? 0.0f : slope;
}

// -t / (t + 2) with t = e^(-2|x|) - 1, and the sign of x.
ZG_HOST_DEVICE ZG_INLINE float Tanh(float x) {
  const float magnitude = Abs(x);
  const float t = Expm1(-(magnitude + magnitude));
  return CopySign(t / (t + 2.0f), x);
}

ZG_HOST_DEVICE ZG_INLINE float Sigmoid(float x) { return 1.0f / (1.0f + Exp(-x)); }

ZG_HOST_DEVICE ZG_INLINE float Softplus(float x) {
  return Log1pPlus(ExpOfNotHigh(-Abs(x)), x > 0.0f ? x : 0.0f);
}

// A rational function of x on [-4, 4], beyond which it is 1 in f32; error below 1e-6.
// Source: the minimax approximation of Eigen's generic_fast_erf.
ZG_HOST_DEVICE ZG_INLINE float Erf(float x) {
  const float magnitude = Abs(x);
  const float clamped = CopySign(magnitude > 4.0f ? 4.0f : magnitude, x);
  const float square = clamped * clamped;
  const float p = Polynomial<Fused>(
      square, -2.72614225801306e-10f, 2.77068142495902e-8f, -2.10102402082508e-6f,
      -5.69250639462346e-5f, -7.34990630326855e-4f, -2.95459980854025e-3f, -1.60960333262415e-2f);
  const float q =
      Polynomial<Fused>(square, -1.45660718464996e-5f, -2.13374055278905e-4f, -1.68282697438203e-3f,
                        -7.37332916720468e-3f, -1.42647390514189e-2f);
  return clamped * p / q;
}

ZG_HOST_DEVICE ZG_INLINE float GeluErf(float x) {
  const float half = 0.5f * x;
  return Fused::MulAdd(half, Erf(x * 0.70710678118654752f), half);
}
ZG_HOST_DEVICE ZG_INLINE float GeluErfGrad(float dy, float x) {
  const float share = Fused::MulAdd(Erf(x * 0.70710678118654752f), 0.5f, 0.5f);
  return dy * Fused::MulAdd(x * 0.39894228040143268f, ExpOfNotHigh(-0.5f * (x * x)), share);
}

}  // namespace elementwise

}  // namespace zg
