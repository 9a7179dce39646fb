#include "tests/testing/finite_differences.h"

#include <gtest/gtest.h>

#include <cmath>

namespace zg::testing {
namespace {

TEST(FiniteDifferencesTest, IsExactForQuarticPolynomials) {
  const auto f = [](const std::vector<double>& x) { return std::pow(x[0], 4) + x[0] * x[1]; };
  const std::vector<double> gradient = NumericalGradient(f, {2.0, 3.0}, 0.25);
  EXPECT_NEAR(gradient[0], 4 * 8.0 + 3.0, 1e-10);
  EXPECT_NEAR(gradient[1], 2.0, 1e-10);
}

TEST(FiniteDifferencesTest, IsCloseForOtherFunctions) {
  const auto f = [](const std::vector<double>& x) { return std::exp(x[0]); };
  EXPECT_NEAR(NumericalGradient(f, {0.5}, 1.0 / 16)[0], std::exp(0.5), 1e-5);
}

}  // namespace
}  // namespace zg::testing
