// sin and cos, as kernels of all devices compute them: an angle is a number of quarter turns and a
// rest in [-pi/4, pi/4], whose sine and cosine are Cephes' polynomials.
#pragma once

#include <cmath>
#include <cstdint>

#include "framework/base/host_device.h"
#include "framework/kernels/math/elementary_math.h"
#include "framework/kernels/math/vector_math.h"

namespace zg {

namespace elementwise {

struct QuarterTurns {
  uint32_t count;  // whose lowest two bits matter
  float rest;
};

// Below it, loops that find the turns are vectorised.
inline constexpr float kFarAngle = 1048576.0f;

// For |x| < kFarAngle. pi/2 is in three parts, of which `count` times the first is subtracted
// exactly.
ZG_HOST_DEVICE ZG_INLINE QuarterTurns TurnsOfNear(float x) {
  // Adding 1.5 * 2^23 rounds to an integer, which is then in the lowest bits.
  const float shifted = Fused::MulAdd(x, 0.63661977236758134f, 12582912.0f);
  const float n = shifted - 12582912.0f;
  float rest = Fused::MulAdd(n, -1.57079637050628662f, x);
  rest = Fused::MulAdd(n, 4.37113900018624283e-8f, rest);
  rest = Fused::MulAdd(n, 1.71512493e-15f, rest);
  return {BitCast<uint32_t>(shifted), rest};
}

// For all finite x (Payne and Hanek, Radian reduction for trigonometric functions, 1983): 1 / (2 pi)
// is in parts of 29 bits, whose products with x are exact in double, and whole turns are dropped.
ZG_HOST_DEVICE inline QuarterTurns TurnsOfFar(float x) {
  constexpr double kParts[] = {0x1.45f306dp-3,   0x1.9391054p-32, 0x1.4fe13abp-61, 0x1.d1f534dp-90,
                               0x1.b81b6c5p-119, 0x1.5993c4p-150, 0x1.c820ff2p-177};
  double turns = 0.0;
  for (const double part : kParts) {
    const double product = static_cast<double>(x) * part;
    turns += product - floor(product);
    turns -= floor(turns);
  }
  const double count = floor(4.0 * turns + 0.5);
  return {static_cast<uint32_t>(count),
          static_cast<float>((4.0 * turns - count) * 1.5707963267948966)};
}

ZG_HOST_DEVICE ZG_INLINE float SineOf(QuarterTurns turns) {
  const float rest = turns.rest, square = rest * rest;
  const float odd =
      Polynomial<Fused>(square, -1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f);
  const float sine = Fused::MulAdd(odd, square * rest, rest);
  const float even = Polynomial<Fused>(square, 2.443315711809948e-5f, -1.388731625493765e-3f,
                                       4.166664568298827e-2f);
  const float cosine = Fused::MulAdd(even, square * square, Fused::MulAdd(square, -0.5f, 1.0f));
  const float value = (turns.count & 1u) != 0 ? cosine : sine;
  return BitCast<float>(BitCast<uint32_t>(value) ^ ((turns.count & 2u) << 30));
}

// The sine of x and so many quarter turns.
ZG_HOST_DEVICE ZG_INLINE float NearSine(float x, uint32_t more) {
  const QuarterTurns turns = TurnsOfNear(x);
  return SineOf({turns.count + more, turns.rest});
}
ZG_HOST_DEVICE ZG_INLINE float Sine(float x, uint32_t more) {
  if (Abs(x) < kFarAngle) return NearSine(x, more);
  if (!(Abs(x) < __builtin_inff())) return x - x;  // NaN
  const QuarterTurns turns = TurnsOfFar(x);
  return SineOf({turns.count + more, turns.rest});
}

// For |x| < kFarAngle.
ZG_HOST_DEVICE ZG_INLINE float NearSin(float x) { return NearSine(x, 0); }
ZG_HOST_DEVICE ZG_INLINE float NearCos(float x) { return NearSine(x, 1); }

ZG_HOST_DEVICE ZG_INLINE float Sin(float x) { return Sine(x, 0); }
ZG_HOST_DEVICE ZG_INLINE float Cos(float x) { return Sine(x, 1); }

}  // namespace elementwise

}  // namespace zg
