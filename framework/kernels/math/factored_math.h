// The arithmetic of factored_update (framework/ops/factored_update.cc) on every device.
//
// Squares of a tensor's gradient are summed by rows and by columns as integers, so that neither the
// order nor the distribution of parts matters. They are counted in a unit derived from the square
// sum S of the whole tensor: with 2^e the power of two above S, a square is `high` units of 2^(e -
// 50), to the nearest, and the rest `low` units of 2^(e - 50 - low_bits). 50 + low_bits is 100; if
// a row or column has more than 2^12 elements, it is lower by as many bits as that needs. So the
// error of a sum is negligible even in a row whose elements are 2^-24 of the largest.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "framework/base/host_device.h"

namespace zg {

struct FactoredOptions {
  double lr;
  double weight_decay;
  double beta2_decay;
  double epsilon1;
  double epsilon2;
  double clip_threshold;
  double after_updates;
};

// The numbers of one update that all elements share.
struct FactoredStep {
  double share;     // weight of the new mean in a state
  double lr;        // including the schedule's factor
  double relative;  // min(lr, 1 / sqrt(number))
};

ZG_HOST_DEVICE inline FactoredStep FactoredStepOf(const FactoredOptions& options, double lr_factor,
                                                  double number) {
  const double own_number = number - options.after_updates;
  const double lr = options.lr * lr_factor;
  const double bound = 1.0 / std::sqrt(own_number);
  return {std::pow(own_number, options.beta2_decay), lr, lr < bound ? lr : bound};
}

// The units in which the squares of one tensor are counted.
struct SquareUnit {
  double per_square;  // high units in a square of 1; 0 if S is 0 or not finite
  double per_rest;    // low units in a high one
  double high;        // a high unit; NaN if S is not finite
};

// `square_sum`: S; `longest`: elements of a row or a column.
ZG_HOST_DEVICE inline SquareUnit SquareUnitOf(double square_sum, int64_t longest) {
  int low_bits = 50;
  for (int64_t reach = int64_t{1} << 12; reach < longest; reach *= 2) --low_bits;
  SquareUnit unit = {0.0, std::ldexp(1.0, low_bits), 0.0};
  if (!std::isfinite(square_sum)) unit.high = std::numeric_limits<double>::quiet_NaN();
  if (!std::isfinite(square_sum) || square_sum <= 0.0) return unit;
  int exponent = 0;
  std::frexp(square_sum, &exponent);
  unit.per_square = std::ldexp(1.0, 50 - exponent);
  unit.high = std::ldexp(1.0, exponent - 50);
  return unit;
}

struct SquareDigits {
  int64_t high;
  int64_t low;
};

// x rounded to an integer, |x| <= 2^51.
ZG_HOST_DEVICE ZG_INLINE double RoundToWhole(double x, int64_t* whole) {
  constexpr double kOffset = 6755399441055744.0;  // 1.5 * 2^52, where the last bit is worth 1
  const double shifted = x + kOffset;
  int64_t bits, offset_bits;
  std::memcpy(&bits, &shifted, sizeof(bits));
  std::memcpy(&offset_bits, &kOffset, sizeof(offset_bits));
  *whole = bits - offset_bits;
  return shifted - kOffset;
}

ZG_HOST_DEVICE ZG_INLINE SquareDigits DigitsOfSquare(float x, double per_square, double per_rest) {
  const double units = static_cast<double>(x) * x * per_square;
  SquareDigits digits;
  const double rest = units - RoundToWhole(units, &digits.high);
  RoundToWhole(rest * per_rest, &digits.low);
  return digits;
}

// The state of a row or column after the update; `count`: its elements.
ZG_HOST_DEVICE inline float NextFactor(float factor, const SquareUnit& unit, int64_t high,
                                       int64_t low, int64_t count, double share) {
  const double units = static_cast<double>(high) + static_cast<double>(low) / unit.per_rest;
  const double mean = units * unit.high / static_cast<double>(count);
  const double old_value = factor;
  return static_cast<float>(old_value + share * (mean - old_value));
}

// The divisor of a row's state; `mean`: the mean over the matrix's rows. NaN stays NaN, likewise
// below.
ZG_HOST_DEVICE inline double FactorDivisor(double mean, double epsilon1) {
  return mean < epsilon1 ? epsilon1 : mean;
}

// u, before it is clipped. `ratio`: the row's state over the divisor; `floor`: epsilon1^2.
ZG_HOST_DEVICE ZG_INLINE float FactoredDirection(float g, float ratio, float column, float floor) {
  const float estimate = ratio * column;
  return g / std::sqrt(estimate < floor ? floor : estimate);
}

// The factor of u in the update of a tensor of `size` elements, from the norms of p and u.
ZG_HOST_DEVICE inline float FactoredStepSize(const FactoredOptions& options,
                                             const FactoredStep& step, double p_norm, double u_norm,
                                             int64_t size) {
  const double root = std::sqrt(static_cast<double>(size));
  const double p_rms = p_norm / root;
  const double clipped = u_norm / (root * options.clip_threshold);
  const double alpha = (p_rms < options.epsilon2 ? options.epsilon2 : p_rms) * step.relative;
  return static_cast<float>(alpha / (clipped < 1.0 ? 1.0 : clipped));
}

// p after the update; `decay`: lr weight_decay.
ZG_HOST_DEVICE ZG_INLINE float FactoredNext(float p, float u, float decay, float step_size) {
  return p - decay * p - step_size * u;
}

}  // namespace zg
