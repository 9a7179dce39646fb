#include "framework/kernels/math/vector_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/kernels/math/elementwise_math.h"
#include "tests/ops/special_reference.h"

namespace zg {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

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
  EXPECT_EQ(Exp(-kInfinity), 0.0f);
  EXPECT_EQ(Exp(kInfinity), Exp(88.37f));
  EXPECT_TRUE(std::isfinite(Exp(1000.0f)));
  EXPECT_TRUE(std::isnan(Exp(kNaN)));
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

struct Function {
  const char* name;
  float (*computed)(float);
  double (*exact)(double);
  double lowest, highest;
  double most_units;      // of the last place of the exact result,
  double most_error = 0;  // or this
};

// One of 1009 of all floats of the range.
void ExpectAccurate(const Function& function) {
  SCOPED_TRACE(function.name);
  const float smallest = std::numeric_limits<float>::denorm_min();
  double worst_units = 0;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 1009) {
    const float x = BitCast<float>(static_cast<uint32_t>(bits));
    if (!(x >= function.lowest && x <= function.highest)) continue;
    const double exact = function.exact(x);
    const double error = std::abs(function.computed(x) - exact);
    if (error <= function.most_error) continue;
    const double unit = std::ldexp(1.0, std::ilogb(exact) - 23);
    worst_units = std::max(worst_units, error / std::max(unit, static_cast<double>(smallest)));
  }
  EXPECT_LE(worst_units, function.most_units);
}

TEST(ElementwiseMath, IsAccurate) {
  using elementwise::Pow;
  const auto softplus = [](double x) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  };
  const auto gelu = [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); };
  const Function functions[] = {
      {"exp", elementwise::FullExp, std::exp, -104, 88.72, 1.1},
      {"log", elementwise::FullLog, std::log, 1e-45, 3.4e38, 1.0},
      {"expm1 below 0", elementwise::Expm1, std::expm1, -1e6, 0, 1.0},
      {"expm1", elementwise::FullExpm1, std::expm1, -1e6, 88.72, 1.5},
      {"log1p", elementwise::FullLog1p, std::log1p, -0.99999994, 3.4e38, 2.0},
      {"floor", elementwise::Floor, std::floor, -1e10, 1e10, 0.0},
      {"round", elementwise::RoundToEven, std::nearbyint, -1e10, 1e10, 0.0},
      {"tanh", elementwise::Tanh, std::tanh, -1e6, 1e6, 3.0},
      {"sin", elementwise::Sin, std::sin, -1048576, 1048576, 2.0, 1e-7},
      {"cos", elementwise::Cos, std::cos, -1048576, 1048576, 2.0, 1e-7},
      {"sin of all", elementwise::Sin, std::sin, -3.4e38, 3.4e38, 2.0, 1e-7},
      {"cos of all", elementwise::Cos, std::cos, -3.4e38, 3.4e38, 2.0, 1e-7},
      {"softplus", elementwise::Softplus, softplus, -87, 1e6, 3.0},
      {"erf", elementwise::Erf, std::erf, -1e6, 1e6, 4.0, 4e-7},
      {"erfc", elementwise::Erfc, std::erfc, -1e6, 9.3, 6.0},
      {"erfcx", elementwise::Erfcx, testing::Erfcx, -9.3, 1e6, 6.0},
      {"erfinv", elementwise::Erfinv, testing::Erfinv, -0.99999994, 0.99999994, 6.0},
      {"lgamma", elementwise::Lgamma, std::lgamma, 1e-37, 1e30, 6.0},
      {"lgamma below 0", elementwise::Lgamma, std::lgamma, -30, -1e-37, 8.0, 2e-6},
      {"digamma", elementwise::Digamma, testing::Digamma, 1e-37, 1e30, 7.0, 1e-6},
      {"digamma below 0", elementwise::Digamma, testing::Digamma, -30, -1e-3, 16.0, 2e-6},
      {"trigamma below 0", elementwise::Trigamma, testing::Trigamma, -30, -1e-3, 16.0},
      {"trigamma", elementwise::Trigamma, testing::Trigamma, 1e-18, 1e30, 6.0},
      {"gelu_erf", elementwise::GeluErf, gelu, -10, 10, 4.0, 2e-6},
      {"power 2.5", [](float x) { return Pow(x, 2.5f); }, [](double x) { return std::pow(x, 2.5); },
       1e-15, 1e15, 0.51},
      {"power -30", [](float x) { return Pow(x, -30.0f); },
       [](double x) { return std::pow(x, -30.0); }, 0.06, 16, 0.6},
  };
  for (const Function& function : functions) ExpectAccurate(function);
}

TEST(ElementwiseMath, WholePowersOfWholeNumbersAreExact) {
  for (int base = 1; base <= 4096; ++base) {
    int64_t power = 1;
    for (int exponent = 0; power <= 1 << 24 && exponent < 25; ++exponent, power *= base) {
      const auto a = static_cast<float>(base), b = static_cast<float>(exponent);
      ASSERT_EQ(elementwise::Pow(a, b), static_cast<float>(power)) << base << "^" << exponent;
      ASSERT_EQ(elementwise::Pow(-a, b), static_cast<float>(exponent % 2 == 0 ? power : -power));
    }
  }
}

TEST(ElementwiseMath, PowersAtTheEndsAreThoseOfC) {
  const float special[] = {0.0f, 1.0f,  -1.0f, 2.0f,   -2.0f,     0.5f,       -0.5f,
                           3.0f, -3.0f, 1e30f, -1e30f, kInfinity, -kInfinity, kNaN};
  for (const float a : special) {
    for (const float b : special) {
      const float got = elementwise::Pow(a, b), want = std::pow(a, b);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << a << "^" << b << ": " << got;
      } else if (std::isinf(want) || want == 0.0f) {
        EXPECT_EQ(got, want) << a << "^" << b;
      } else {
        EXPECT_FLOAT_EQ(got, want) << a << "^" << b;
      }
    }
  }
}

TEST(ElementwiseMath, AtTheEnds) {
  EXPECT_EQ(elementwise::FullExp(kInfinity), kInfinity);
  EXPECT_EQ(elementwise::FullExp(89.0f), kInfinity);
  EXPECT_EQ(elementwise::FullExp(-kInfinity), 0.0f);
  EXPECT_EQ(elementwise::FullLog(0.0f), -kInfinity);
  EXPECT_EQ(elementwise::FullLog(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(elementwise::FullLog(-1.0f)));
  EXPECT_TRUE(std::isnan(elementwise::FullLog(-kInfinity)));
  EXPECT_EQ(elementwise::Erfc(kInfinity), 0.0f);
  EXPECT_EQ(elementwise::Erfc(-kInfinity), 2.0f);
  EXPECT_EQ(elementwise::Erfcx(kInfinity), 0.0f);
  EXPECT_EQ(elementwise::Erfcx(-10.0f), kInfinity);
  EXPECT_EQ(elementwise::Erfinv(1.0f), kInfinity);
  EXPECT_EQ(elementwise::Erfinv(-1.0f), -kInfinity);
  EXPECT_TRUE(std::isnan(elementwise::Erfinv(1.5f)));
  EXPECT_EQ(elementwise::Lgamma(0.0f), kInfinity);
  EXPECT_EQ(elementwise::Lgamma(1.0f), 0.0f);
  EXPECT_EQ(elementwise::Lgamma(2.0f), 0.0f);
  EXPECT_EQ(elementwise::Lgamma(-3.0f), kInfinity);
  EXPECT_EQ(elementwise::Lgamma(kInfinity), kInfinity);
  EXPECT_EQ(elementwise::Digamma(0.0f), -kInfinity);
  EXPECT_TRUE(std::isnan(elementwise::Digamma(-2.0f)));
  EXPECT_EQ(elementwise::Trigamma(-2.0f), kInfinity);
  for (const auto function : {elementwise::Erfc, elementwise::Erfcx, elementwise::Erfinv,
                              elementwise::Lgamma, elementwise::Digamma, elementwise::Trigamma}) {
    EXPECT_TRUE(std::isnan(function(kNaN)));
  }
  EXPECT_EQ(elementwise::FullExpm1(kInfinity), kInfinity);
  EXPECT_EQ(elementwise::FullExpm1(89.0f), kInfinity);
  EXPECT_EQ(elementwise::FullExpm1(-kInfinity), -1.0f);
  EXPECT_EQ(elementwise::FullLog1p(-1.0f), -kInfinity);
  EXPECT_EQ(elementwise::FullLog1p(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(elementwise::FullLog1p(-1.5f)));
  EXPECT_EQ(elementwise::Floor(-kInfinity), -kInfinity);
  EXPECT_EQ(elementwise::RoundToEven(kInfinity), kInfinity);
  EXPECT_EQ(elementwise::RoundToEven(2.5f), 2.0f);
  EXPECT_EQ(elementwise::RoundToEven(-3.5f), -4.0f);
  EXPECT_TRUE(std::signbit(elementwise::RoundToEven(-0.25f)));
  EXPECT_EQ(elementwise::Tanh(kInfinity), 1.0f);
  EXPECT_EQ(elementwise::Tanh(-kInfinity), -1.0f);
  EXPECT_EQ(elementwise::Tanh(20.0f), 1.0f);
  EXPECT_EQ(elementwise::Expm1(-kInfinity), -1.0f);
  EXPECT_EQ(elementwise::Softplus(kInfinity), kInfinity);
  EXPECT_EQ(elementwise::Softplus(-kInfinity), 0.0f);
  EXPECT_EQ(elementwise::Erf(kInfinity), 1.0f);
  EXPECT_TRUE(std::signbit(elementwise::Tanh(-0.0f)));
  EXPECT_TRUE(std::isnan(elementwise::Sin(kInfinity)));
  EXPECT_TRUE(std::isnan(elementwise::Cos(-kInfinity)));
  for (const auto function :
       {elementwise::FullExp, elementwise::FullLog, elementwise::Tanh, elementwise::Sin,
        elementwise::Expm1, elementwise::FullExpm1, elementwise::FullLog1p, elementwise::Floor,
        elementwise::RoundToEven, elementwise::Softplus, elementwise::Erf, elementwise::GeluErf}) {
    EXPECT_TRUE(std::isnan(function(kNaN)));
  }
}

}  // namespace
}  // namespace zg
