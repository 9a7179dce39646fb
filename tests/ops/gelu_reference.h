// Gelu and its derivative in doubles, for the references of all ops that contain them.
#pragma once

#include <cmath>

namespace zg::testing {

// The argument of gelu's tanh.
inline double GeluInner(double x) { return std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x); }

inline double Gelu(double x) { return 0.5 * x * (1.0 + std::tanh(GeluInner(x))); }

inline double GeluDerivative(double x) {
  const double t = std::tanh(GeluInner(x));
  const double inner_derivative = std::sqrt(2.0 / M_PI) * (1.0 + 3.0 * 0.044715 * x * x);
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner_derivative;
}

}  // namespace zg::testing
