#include "framework/base/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace zg {
namespace {

using Words = std::array<int64_t, kExactSumWords>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Words WordsOf(const std::vector<double>& terms) {
  ExactSum sum;
  for (double term : terms) sum.Add(term);
  Words words = {};
  sum.AddTo(words.data());
  return words;
}

double ValueOf(const std::vector<double>& terms) {
  ExactSum sum;
  for (double term : terms) sum.Add(term);
  return sum.Value();
}

// Sums of squares of f32 numbers of all magnitudes, and zeros.
std::vector<double> Terms(int count) {
  std::mt19937_64 random(5);
  std::uniform_int_distribution<int> exponent(-149, 127);
  std::vector<double> terms;
  for (int i = 0; i < count; ++i) {
    double term = 0;
    for (int k = 0; k < 16; ++k) {
      const double x = static_cast<float>(
          std::ldexp(static_cast<double>(random() >> 40), exponent(random) - 23));
      term += i % 7 == 0 ? 0 : x * x;
    }
    terms.push_back(term);
  }
  return terms;
}

TEST(ExactSum, ValuesOfOneTerm) {
  EXPECT_EQ(ValueOf({}), 0.0);
  EXPECT_EQ(ValueOf({0.0}), 0.0);
  EXPECT_EQ(ValueOf({1.0}), 1.0);
  const double smallest = std::ldexp(1.0, -298);
  const double largest = 16 * std::pow(double{std::numeric_limits<float>::max()}, 2);
  EXPECT_EQ(ValueOf({smallest}), smallest);
  EXPECT_EQ(ValueOf({largest}), largest);
  for (int exponent = -298; exponent < 260; ++exponent) {
    const double power = std::ldexp(1.0, exponent);
    ASSERT_EQ(ValueOf({power}), power) << exponent;
    const double all_bits = std::ldexp(1.0 - std::ldexp(1.0, -53), exponent);
    if (exponent >= -298 + 53) {
      ASSERT_EQ(ValueOf({all_bits}), all_bits) << exponent;
    }
  }
}

TEST(ExactSum, WordsAreTheDigits) {
  Words expected = {};
  expected[10] = 3;        // 3 * 2^0
  expected[9] = 1u << 31;  // 2^-1
  expected[0] = 1u << 22;  // 2^-298
  EXPECT_EQ(WordsOf({1.0, 2.0, 0.5, std::ldexp(1.0, -298)}), expected);
}

TEST(ExactSum, NothingIsLostBetweenTinyAndHuge) {
  const double tiny = std::ldexp(1.0, -298);
  const double huge = std::ldexp(1.0, 255);
  const Words both = WordsOf({tiny, huge});
  const Words huge_alone = WordsOf({huge});
  EXPECT_NE(both, huge_alone);
  EXPECT_EQ(both[0], WordsOf({tiny})[0]);
}

TEST(ExactSum, OrderDoesNotMatter) {
  std::vector<double> terms = Terms(1000);
  const Words expected = WordsOf(terms);
  std::mt19937 random(9);
  for (int i = 0; i < 10; ++i) {
    std::shuffle(terms.begin(), terms.end(), random);
    EXPECT_EQ(WordsOf(terms), expected);
  }
}

TEST(ExactSum, WordsOfPartsAddUp) {
  const std::vector<double> terms = Terms(1000);
  const Words expected = WordsOf(terms);
  for (const size_t cut : {0, 1, 333, 999, 1000}) {
    Words words = WordsOf({terms.begin(), terms.begin() + cut});
    const Words rest = WordsOf({terms.begin() + cut, terms.end()});
    for (int i = 0; i < kExactSumWords; ++i) words[i] += rest[i];
    EXPECT_EQ(words, expected) << cut;
  }
}

TEST(ExactSum, AgreesWithWholeNumbers) {
  // 2^-40 to 2^40, so that a sum fits 128 bits.
  std::mt19937_64 random(3);
  std::uniform_int_distribution<int> shift(0, 40);
  std::vector<double> terms;
  unsigned __int128 sum = 0;  // in units of 2^-60
  for (int i = 0; i < 10000; ++i) {
    const uint64_t mantissa = random() >> 11;
    const int bits = shift(random);
    sum += static_cast<unsigned __int128>(mantissa) << bits;
    terms.push_back(std::ldexp(static_cast<double>(mantissa), bits - 60));
  }
  // Rounded once, from 128 to 53 bits, on either side.
  const double expected = std::ldexp(static_cast<double>(sum), -60);
  EXPECT_NEAR(ValueOf(terms), expected, expected * 3e-16);
}

TEST(ExactSum, ManySumsDoNotOverflow) {
  // Each has the maximum number of terms of a sum.
  Words full = {};
  for (int i = 0; i < kExactSumWords - 3; ++i) full[i] = std::numeric_limits<int64_t>::max();
  full[kExactSumWords - 3] = kExactSumMaxTerms * 16;  // the part of a term beyond 2^256
  ExactSum sum;
  for (int i = 0; i < 1000; ++i) sum.AddWords(full.data());
  ExactSum one;
  one.AddWords(full.data());
  EXPECT_NEAR(sum.Value() / one.Value(), 1000.0, 1e-10);
}

TEST(ExactSum, CountsWhatIsNotFinite) {
  Words words = WordsOf({1.0, kInfinity, kNaN, kInfinity, -kNaN, 2.0, kInfinity});
  EXPECT_EQ(words[kExactSumWords - 2], 3);
  EXPECT_EQ(words[kExactSumWords - 1], 2);
  words[kExactSumWords - 2] = words[kExactSumWords - 1] = 0;
  EXPECT_EQ(words, WordsOf({3.0}));
  EXPECT_EQ(ValueOf({1.0, kInfinity}), kInfinity);
  EXPECT_TRUE(std::isnan(ValueOf({kInfinity, kNaN})));
  ExactSum sum;
  sum.AddWords(WordsOf({kInfinity}).data());
  EXPECT_EQ(sum.Value(), kInfinity);
  sum.AddWords(WordsOf({kNaN}).data());
  EXPECT_TRUE(std::isnan(sum.Value()));
}

}  // namespace
}  // namespace zg
