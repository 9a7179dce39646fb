// Numerical derivatives, to hold gradient rules against.
#pragma once

#include <functional>
#include <vector>

namespace zg::testing {

// The gradient of `f` at `x` by the five-point formula: exact for polynomials of degree 4, and
// otherwise off by about step^4 plus the noise of f divided by step. `f` in f32 and values near 1
// want a step near 1/16.
std::vector<double> NumericalGradient(const std::function<double(const std::vector<double>&)>& f,
                                      std::vector<double> x, double step);

}  // namespace zg::testing
