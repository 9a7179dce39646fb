#include "framework/kernels/math/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace zg {
namespace {

TEST(VectorMath, ExpIsAccurate) {
  double worst = 0.0;
  for (double x = -87.3; x < 88.3; x += 0.00137) {
    const float argument = static_cast<float>(x);
    const double want = std::exp(static_cast<double>(argument));
    worst = std::max(worst, std::abs(Exp(argument) - want) / want);
  }
  EXPECT_LT(worst, 1.3e-7);
}

TEST(VectorMath, ExpAtTheEnds) {
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-90.0f), 0.0f);
  EXPECT_EQ(Exp(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_EQ(Exp(std::numeric_limits<float>::infinity()), Exp(88.37f));
  EXPECT_TRUE(std::isfinite(Exp(1000.0f)));
  EXPECT_TRUE(std::isnan(Exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST(VectorMath, LogIsAccurate) {
  double worst = 0.0;
  for (double x = 1e-37; x < 1e38; x *= 1.00093) {
    const float argument = static_cast<float>(x);
    const double want = std::log(static_cast<double>(argument));
    worst = std::max(worst, std::abs(Log(argument) - want) / std::max(std::abs(want), 1e-2));
  }
  EXPECT_LT(worst, 2e-7);
  EXPECT_EQ(Log(1.0f), 0.0f);
}

}  // namespace
}  // namespace zg
