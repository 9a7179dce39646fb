#include "tests/testing/finite_differences.h"

namespace zg::testing {

std::vector<double> NumericalGradient(const std::function<double(const std::vector<double>&)>& f,
                                      std::vector<double> x, double step) {
  std::vector<double> gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double center = x[i];
    const auto at = [&](double offset) {
      x[i] = center + offset;
      return f(x);
    };
    const double near = at(step) - at(-step);
    const double far = at(2 * step) - at(-2 * step);
    gradient[i] = (8 * near - far) / (12 * step);
    x[i] = center;
  }
  return gradient;
}

}  // namespace zg::testing
