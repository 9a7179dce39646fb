// Special functions in double that the standard library lacks.
#pragma once

#include <cmath>

namespace zg::testing {

// e^(x^2) erfc(x); from 5 on by its continued fraction.
inline double Erfcx(double x) {
  if (x < 5.0) return std::exp(x * x) * std::erfc(x);
  double fraction = x;
  for (int i = 60; i >= 1; --i) fraction = x + i / 2.0 / fraction;
  return 1.0 / (fraction * std::sqrt(M_PI));
}

// By bisection of erf, and near 0 by its series.
inline double Erfinv(double x) {
  if (std::abs(x) < 1e-3) return std::sqrt(M_PI) / 2.0 * (x + M_PI / 12.0 * x * x * x);
  double low = -6.0, high = 6.0;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2.0;
    // The complement is precise where erf is near an end.
    const bool is_above = x < 0.0 ? std::erfc(-middle) > 1.0 + x : std::erfc(middle) < 1.0 - x;
    (is_above ? high : low) = middle;
  }
  return (low + high) / 2.0;
}

// From 20 on by their asymptotic series, below that by steps of 1; below 0 by reflection.
inline double Digamma(double x) {
  if (x < 0.0) return Digamma(1.0 - x) - M_PI / std::tan(M_PI * x);
  double y = 0.0;
  for (; x < 20.0; ++x) y -= 1.0 / x;
  const double square = 1.0 / (x * x);
  return y + std::log(x) - 0.5 / x - square * (1.0 / 12 - square * (1.0 / 120 - square / 252));
}
inline double Trigamma(double x) {
  if (x < 0.0) return std::pow(M_PI / std::sin(M_PI * x), 2.0) - Trigamma(1.0 - x);
  double y = 0.0;
  for (; x < 20.0; ++x) y += 1.0 / (x * x);
  const double square = 1.0 / (x * x);
  return y + (1.0 + 0.5 / x + square * (1.0 / 6 - square * (1.0 / 30 - square / 42))) / x;
}

}  // namespace zg::testing
