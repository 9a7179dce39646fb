#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "framework/base/exact_sum.h"
#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

using Words = std::vector<int64_t>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Words SquareSum(const std::vector<float>& g, int64_t misalignment = 0) {
  KernelRunner runner("square_sum", {F32({static_cast<int64_t>(g.size())})},
                      {I64({kExactSumWords})}, {}, misalignment);
  runner.SetInput(0, g);
  EXPECT_TRUE(runner.Run().ok());
  return runner.i64_output(0);
}

double ValueOf(const Words& words) {
  ExactSum sum;
  sum.AddWords(words.data());
  return sum.Value();
}

// Magnitudes from 2^-149 to 2^127 and both signs.
std::vector<float> OfAllMagnitudes(int64_t count) {
  std::mt19937 random(2);
  std::uniform_int_distribution<int> exponent(-149, 127);
  std::vector<float> values = Random(count, 3);
  for (float& value : values) value = std::ldexp(value, exponent(random));
  return values;
}

TEST(SquareSum, AgreesWithLongDoubles) {
  for (const int64_t count : {1, 15, 16, 17, 127, 128, 129, 4096, 100003}) {
    const std::vector<float> g = Random(count, 1, -3.0f, 3.0f);
    long double expected = 0;
    for (const float value : g) expected += static_cast<long double>(value) * value;
    const auto rounded = static_cast<double>(expected);
    EXPECT_NEAR(ValueOf(SquareSum(g)), rounded, 1e-15 * rounded) << count;
  }
}

TEST(SquareSum, OfNothingIsZero) {
  EXPECT_EQ(SquareSum({}), Words(kExactSumWords));
  EXPECT_EQ(SquareSum(std::vector<float>(1000)), Words(kExactSumWords));
}

TEST(SquareSum, TinyAndHugeValues) {
  EXPECT_EQ(ValueOf(SquareSum({1e-38f})), double{1e-38f} * 1e-38f);
  EXPECT_EQ(ValueOf(SquareSum({1e-45f})), double{1e-45f} * 1e-45f);
  EXPECT_EQ(ValueOf(SquareSum({1e38f})), double{1e38f} * 1e38f);
  const std::vector<float> largest(4096, std::numeric_limits<float>::max());
  EXPECT_EQ(ValueOf(SquareSum(largest)), 4096 * std::pow(double{largest[0]}, 2));
  // Far beyond the digits of an f64, and still exact.
  std::vector<float> both(32);
  both[0] = 1e38f;
  both[16] = 1e-38f;
  EXPECT_NE(SquareSum(both), SquareSum({1e38f}));
}

TEST(SquareSum, OrderOfTheBlocksDoesNotMatter) {
  const int64_t num_blocks = 301;
  const std::vector<float> g = OfAllMagnitudes(16 * num_blocks);
  const Words expected = SquareSum(g);
  std::vector<int64_t> order(num_blocks);
  for (int64_t i = 0; i < num_blocks; ++i) order[i] = i;
  std::mt19937 random(4);
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::shuffle(order.begin(), order.end(), random);
    std::vector<float> shuffled;
    for (const int64_t block : order) {
      shuffled.insert(shuffled.end(), g.begin() + 16 * block, g.begin() + 16 * block + 16);
    }
    EXPECT_EQ(SquareSum(shuffled), expected);
  }
}

TEST(SquareSum, ShardsAddUpToTheWhole) {
  const int64_t count = 16 * 1201;
  const std::vector<float> g = OfAllMagnitudes(count);
  const Words expected = SquareSum(g);
  for (const int64_t cut : {0, 16, 112, 1600, 16 * 777, 16 * 1200}) {
    Words words = SquareSum({g.begin(), g.begin() + cut});
    const Words rest = SquareSum({g.begin() + cut, g.end()}, /*misalignment=*/cut % 3 * 2);
    for (int i = 0; i < kExactSumWords; ++i) words[i] += rest[i];
    EXPECT_EQ(words, expected) << cut;
  }
}

TEST(SquareSum, PaddingChangesNothing) {
  std::vector<float> g = OfAllMagnitudes(1000);
  const Words expected = SquareSum(g);
  g.resize(4096);
  EXPECT_EQ(SquareSum(g), expected);
}

TEST(SquareSum, CountsBlocksThatAreNotFinite) {
  for (const float infinity : {kInfinity, -kInfinity}) {
    std::vector<float> g = Random(1000);
    g[3] = g[500] = infinity;
    const Words words = SquareSum(g);
    EXPECT_EQ(words[kExactSumWords - 2], 2);
    EXPECT_EQ(words[kExactSumWords - 1], 0);
    EXPECT_EQ(ValueOf(words), kInfinity);
    g[7] = kNaN;
    EXPECT_EQ(SquareSum(g)[kExactSumWords - 1], 1);
    EXPECT_TRUE(std::isnan(ValueOf(SquareSum(g))));
  }
}

Words AddSquareSums(const std::vector<Words>& sums) {
  KernelRunner runner("add_square_sums",
                      std::vector<TensorType>(sums.size(), I64({kExactSumWords})),
                      {I64({kExactSumWords})}, {});
  for (size_t i = 0; i < sums.size(); ++i) runner.SetInput(static_cast<int>(i), sums[i]);
  EXPECT_TRUE(runner.Run().ok());
  return runner.i64_output(0);
}

TEST(AddSquareSums, CarriesAndKeepsTheSum) {
  const std::vector<float> g = OfAllMagnitudes(16 * 1000);
  const Words whole = SquareSum(g);
  const Words sum = AddSquareSums(
      {SquareSum({g.begin(), g.begin() + 16 * 300}), SquareSum({g.begin() + 16 * 300, g.end()})});
  EXPECT_NE(sum, whole);  // some word of a thousand terms has more than 32 bits
  EXPECT_EQ(sum, AddSquareSums({whole}));
  EXPECT_EQ(ValueOf(sum), ValueOf(whole));
  for (int i = 0; i < kExactSumWords; ++i) EXPECT_LT(sum[i], int64_t{1} << 32);
}

TEST(AddSquareSums, KeepsCountsOfWhatIsNotFinite) {
  const Words sum = AddSquareSums({SquareSum({kInfinity}), SquareSum({1.0f}), SquareSum({kNaN})});
  EXPECT_EQ(sum[kExactSumWords - 2], 1);
  EXPECT_EQ(sum[kExactSumWords - 1], 1);
}

struct Control {
  float factor;
  float step;
  float norm;
};

Control UpdateControl(const std::vector<Words>& sums, double max_norm) {
  KernelRunner runner("update_control", std::vector<TensorType>(sums.size(), I64({kExactSumWords})),
                      {F32({2}), F32({})}, {{"max_norm", max_norm}});
  for (size_t i = 0; i < sums.size(); ++i) runner.SetInput(static_cast<int>(i), sums[i]);
  runner.step().step = 41;
  EXPECT_TRUE(runner.Run().ok());
  return {runner.output(0)[0], runner.output(0)[1], runner.output(1)[0]};
}

TEST(UpdateControl, FactorIsThatOfClipping) {
  const std::vector<Words> sums = {SquareSum({3.0f}), SquareSum({0.0f, 4.0f})};  // norm 5
  const Control clipped = UpdateControl(sums, 2.0);
  EXPECT_EQ(clipped.norm, 5.0f);
  EXPECT_EQ(clipped.factor, static_cast<float>(2.0 / (5.0 + 1e-6)));
  EXPECT_EQ(clipped.step, 41.0f);
  EXPECT_EQ(UpdateControl(sums, 6.0).factor, 1.0f);
  EXPECT_EQ(UpdateControl(sums, 0.0).factor, 1.0f);
  EXPECT_EQ(UpdateControl(sums, 0.0).norm, 5.0f);
  EXPECT_EQ(UpdateControl({SquareSum({})}, 1.0).factor, 1.0f);
}

TEST(UpdateControl, HowTheSumIsSpreadDoesNotMatter) {
  const std::vector<float> g = OfAllMagnitudes(16 * 100);
  const Control whole = UpdateControl({SquareSum(g)}, 1.0);
  std::vector<Words> parts;
  for (int i = 0; i < 100; ++i) {
    parts.push_back(SquareSum({g.begin() + 16 * i, g.begin() + 16 * i + 16}));
  }
  const Control spread = UpdateControl(parts, 1.0);
  EXPECT_EQ(spread.norm, whole.norm);
  EXPECT_EQ(spread.factor, whole.factor);
}

// A factor of 0 would silently skip the update.
TEST(UpdateControl, FactorIsNeverZero) {
  const Control huge = UpdateControl({SquareSum(std::vector<float>(4096, 3e38f))}, 1e-10);
  EXPECT_EQ(huge.norm, kInfinity);  // infinite as an f32
  EXPECT_EQ(huge.factor, std::numeric_limits<float>::min());
  for (const float bad : {kInfinity, kNaN}) {
    EXPECT_TRUE(std::isnan(UpdateControl({SquareSum({bad})}, 1.0).factor));
    EXPECT_EQ(UpdateControl({SquareSum({bad})}, 0.0).factor, 1.0f);
  }
  EXPECT_EQ(UpdateControl({SquareSum({kInfinity})}, 1.0).norm, kInfinity);
  EXPECT_TRUE(std::isnan(UpdateControl({SquareSum({kNaN})}, 1.0).norm));
}

}  // namespace
}  // namespace zg::testing
