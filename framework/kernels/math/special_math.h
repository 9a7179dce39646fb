// Special functions of one element, for loops that the compiler vectorises (vector_math.h). Polynomials
// without a source are those whose largest relative error is smallest, below 4e-8.
#pragma once

#include <cstdint>

#include "framework/base/host_device.h"
#include "framework/kernels/math/elementary_math.h"
#include "framework/kernels/math/sine_math.h"

namespace zg::elementwise {

// e^(x^2) erfc(x) for x >= 0, by a polynomial in t = 2 / (2 + x).
ZG_HOST_DEVICE ZG_INLINE float ErfcxOfPositive(float x) {
  const float t = 2.0f / (2.0f + x);
  return t * Polynomial<Fused>(t, 4.236515957e-02f, -2.309194137e-01f, 4.863081579e-01f,
                               -4.471278788e-01f, 1.271959217e-01f, -5.727962381e-02f,
                               9.301353646e-02f, 1.753747166e-01f, 2.468807734e-01f,
                               2.820938452e-01f, 2.820947949e-01f);
}
// e^(-x^2), with what rounding leaves out of the square.
ZG_HOST_DEVICE ZG_INLINE float ExpOfMinusSquare(float x) {
  const float square = x * x;
  const float e = ExpOfNotHigh(-square);
  const float left_out = Fused::MulAdd(x, x, -square);
  return e > 0.0f ? Fused::MulAdd(e, -left_out, e) : e;
}
ZG_HOST_DEVICE ZG_INLINE float Erfc(float x) {
  const float magnitude = Abs(x);
  const float y = ExpOfMinusSquare(magnitude) * ErfcxOfPositive(magnitude);
  return x < 0.0f ? 2.0f - y : y;
}
// For x < 0 it is 2 e^(x^2) - erfcx(-x).
ZG_HOST_DEVICE ZG_INLINE float Erfcx(float x) {
  const float square = x * x;
  const float bounded = x < -16.0f ? -16.0f : x;  // where it is infinite
  const float left_out = Fused::MulAdd(bounded, bounded, -(bounded * bounded));
  const float twice = FullExp(square) * Fused::MulAdd(2.0f, left_out, 2.0f);
  const float of_magnitude = ErfcxOfPositive(Abs(x));
  const float of_negative = twice < __builtin_inff() ? twice - of_magnitude : __builtin_inff();
  return x < 0.0f ? of_negative : of_magnitude;
}

// Source: Giles, Approximating the erfinv function (2010), single precision.
ZG_HOST_DEVICE ZG_INLINE float Erfinv(float x) {
  const float w = -FullLog((1.0f - x) * (1.0f + x));
  const float near = w - 2.5f, far = Sqrt(w) - 3.0f;
  const float of_near = Polynomial<Fused>(near, 2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f,
                                          -4.39150654e-06f, 0.00021858087f, -0.00125372503f,
                                          -0.00417768164f, 0.246640727f, 1.50140941f);
  const float of_far =
      Polynomial<Fused>(far, -0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f,
                        0.00573950773f, -0.0076224613f, 0.00943887047f, 1.00167406f, 2.83297682f);
  const float y = (w < 5.0f ? of_near : of_far) * x;
  return Abs(x) == 1.0f ? CopySign(__builtin_inff(), x) : y;
}

// sin(pi x) and cos(pi x), exactly 0 where they are.
ZG_HOST_DEVICE ZG_INLINE float SinOfHalfTurns(float x) {
  const float rest = x - 2.0f * RoundToEven(0.5f * x);  // in [-1, 1]
  const float magnitude = Abs(rest);
  const float folded = magnitude > 0.5f ? 1.0f - magnitude : magnitude;
  return CopySign(NearSin(folded * 3.14159265f), rest);
}
ZG_HOST_DEVICE ZG_INLINE float CosOfHalfTurns(float x) { return SinOfHalfTurns(0.5f - Abs(x)); }

// ln(gamma(x)) for x > 0: near its zeros at 1 and 2 a polynomial times the distance from them, from 3
// on Stirling's series, and below 1/2 that of x + 1 less ln(x).
ZG_HOST_DEVICE ZG_INLINE float LgammaOfPositive(float x) {
  const float up = x < 0.5f ? x + 1.0f : x;
  const float from_one = up - 1.0f, from_two = up - 2.0f;
  const float near_one =
      from_one * Polynomial<Fused>(from_one, 1.597378822e-01f, -1.833085047e-01f, 7.907774247e-02f,
                                   -8.158259758e-02f, 1.276479783e-01f, -1.481632244e-01f,
                                   1.695123482e-01f, -2.071359317e-01f, 2.705773703e-01f,
                                   -4.006910829e-01f, 8.224671243e-01f, -5.772156459e-01f);
  const float near_two =
      from_two * Polynomial<Fused>(from_two, -1.215144392e-04f, 5.161964741e-04f, -1.255632041e-03f,
                                   2.905578328e-03f, -7.373665191e-03f, 2.057782431e-02f,
                                   -6.735312268e-02f, 3.224671479e-01f, 4.227843457e-01f);
  const float inverse = 1.0f / up;
  const float series =
      inverse * Polynomial<Fused>(inverse * inverse, -5.952380952e-04f, 7.936507937e-04f,
                                  -2.777777778e-03f, 8.333333333e-02f);
  const float log = FullLog(x < 0.5f ? x : up);
  const float far = Fused::MulAdd(up - 0.5f, log - 1.0f, series + 0.418938533f);
  const float near = up < 1.5f ? near_one : near_two;
  const float y = up < 3.0f ? near - KeepIf(x < 0.5f, log) : far;
  return x < __builtin_inff() ? y : x;
}
// ln |gamma(x)|; below 0 by gamma(x) gamma(1 - x) = pi / sin(pi x).
ZG_HOST_DEVICE ZG_INLINE float Lgamma(float x) {
  const float positive = LgammaOfPositive(x < 0.0f ? 1.0f - x : Abs(x));
  const float sine = Abs(SinOfHalfTurns(x));
  const float of_negative = 1.14472989f - FullLog(sine) - positive;
  const float below = (sine == 0.0f) | (x <= -8388608.0f) ? __builtin_inff() : of_negative;
  return x < 0.0f ? below : positive;
}

// The derivative of ln(gamma(x)) for x > 0: its asymptotic series from 6 on, and below that the series
// of x + 6 less 1 / x + ... + 1 / (x + 5).
ZG_HOST_DEVICE ZG_INLINE float DigammaOfPositive(float x) {
  float numerator = 0.0f, denominator = 1.0f;
  for (int i = 0; i < 6; ++i) {
    const float step = x + static_cast<float>(i);
    numerator = Fused::MulAdd(numerator, step, denominator);
    denominator *= step;
  }
  const bool is_low = x < 6.0f;
  const float up = is_low ? x + 6.0f : x;
  const float inverse = 1.0f / up;
  const float square = inverse * inverse;
  const float series =
      square * Polynomial<Fused>(square, 3.968253968e-03f, -8.333333333e-03f, 8.333333333e-02f);
  const float y = FullLog(up) - 0.5f * inverse - series;
  return is_low ? y - numerator / denominator : y;
}
// Below 0 by digamma(1 - x) - digamma(x) = pi / tan(pi x).
ZG_HOST_DEVICE ZG_INLINE float Digamma(float x) {
  const float of_positive = DigammaOfPositive(x > 0.0f ? x : 1.0f - x);
  const float cotangent = CosOfHalfTurns(x) / SinOfHalfTurns(x);
  const float below = Fused::MulAdd(-3.14159265f, cotangent, of_positive);
  const float of_others = x == Floor(x) ? __builtin_nanf("") : below;
  const float y = x > 0.0f ? of_positive : of_others;
  return x == 0.0f ? CopySign(__builtin_inff(), -x) : y;
}

// The derivative of digamma, likewise.
ZG_HOST_DEVICE ZG_INLINE float TrigammaOfPositive(float x) {
  float sum = 0.0f;
  for (int i = 0; i < 6; ++i) {
    const float inverse = 1.0f / (x + static_cast<float>(i));
    sum = Fused::MulAdd(inverse, inverse, sum);
  }
  const bool is_low = x < 6.0f;
  const float inverse = 1.0f / (is_low ? x + 6.0f : x);
  const float series =
      Polynomial<Fused>(inverse * inverse, 2.380952381e-02f, -3.333333333e-02f, 1.666666667e-01f);
  const float y = inverse * Fused::MulAdd(inverse, Fused::MulAdd(inverse, series, 0.5f), 1.0f);
  return is_low ? y + sum : y;
}
// Below 0 by trigamma(1 - x) + trigamma(x) = (pi / sin(pi x))^2.
ZG_HOST_DEVICE ZG_INLINE float Trigamma(float x) {
  const float of_positive = TrigammaOfPositive(x > 0.0f ? x : 1.0f - x);
  const float quotient = 3.14159265f / SinOfHalfTurns(x);
  return x > 0.0f ? of_positive : Fused::MulAdd(quotient, quotient, -of_positive);
}

}  // namespace zg::elementwise
