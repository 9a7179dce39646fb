#include "framework/kernels/math/code_finder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

#include "framework/kernels/math/quantised_math.h"

namespace zg {
namespace {

class Finder : public testing::TestWithParam<bool> {
 protected:
  void ExpectNearest(float x) const {
    ASSERT_EQ(finder_.CodeOf(x, CodeFinder::KeyOf(x)), NearestCode(table_, x)) << x;
  }
  float Least() const { return GetParam() ? -1.0f : 0.0f; }

  const CodeTable table_ = MakeCodeTable(GetParam());
  const CodeFinder finder_{table_};
};

TEST_P(Finder, FindsTheNearestCodeOfAnyNumber) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> exponent(-30.0f, 0.0f);
  for (int i = 0; i < 200000; ++i) {
    const float magnitude = std::exp2(exponent(random));
    ExpectNearest(magnitude);
    if (Least() < 0.0f) ExpectNearest(-magnitude);
  }
}

TEST_P(Finder, KnowsEveryLimit) {
  for (int place = 0; place < kNumCodes - 1; ++place) {
    const float limit = table_.limits[place];
    ExpectNearest(limit);
    ExpectNearest(std::nextafter(limit, 2.0f));
    ExpectNearest(std::nextafter(limit, -2.0f));
  }
}

// The table of keys is exact only if no key has two limits.
TEST_P(Finder, KnowsTheFirstAndLastNumberOfEveryKey) {
  for (uint32_t key = 0; key < 0x3f80; ++key) {
    for (const uint32_t bits : {key << 16, (key << 16) + 0xffff}) {
      float magnitude;
      std::memcpy(&magnitude, &bits, sizeof(magnitude));
      ExpectNearest(magnitude);
      if (Least() < 0.0f) ExpectNearest(-magnitude);
    }
  }
}

TEST_P(Finder, KnowsTheEnds) {
  for (const float x :
       {Least(), 0.0f, 1.0f, std::numeric_limits<float>::quiet_NaN(),
        -std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::denorm_min()}) {
    ExpectNearest(x);
  }
  ExpectNearest(-0.0f);
}

INSTANTIATE_TEST_SUITE_P(Tables, Finder, testing::Bool(),
                         [](const auto& info) { return info.param ? "Signed" : "Unsigned"; });

}  // namespace
}  // namespace zg
