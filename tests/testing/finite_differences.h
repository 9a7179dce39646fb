// Numerical derivatives, to check gradient rules.
#pragma once

#include <functional>
#include <vector>

namespace zg::testing {

// The gradient of `f` at `x` by the five-point formula: exact for polynomials of degree 4, and
// otherwise with an error of about step^4 plus the noise of f divided by step. With `f` in f32 and
// values near 1, a step near 1/16 is best.
std::vector<double> NumericalGradient(const std::function<double(const std::vector<double>&)>& f,
                                      std::vector<double> x, double step);

}  // namespace zg::testing
