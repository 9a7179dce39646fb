#include "framework/kernels/math/positive_divisor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>

#include "framework/kernels/math/integer_math.h"

namespace zg {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

TEST(PositiveDivisor, DividesLikeTheProcessor) {
  std::mt19937_64 random(1);
  const auto any = [&](int64_t end) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(end));
  };
  for (int i = 0; i < 20000; ++i) {
    const int64_t near_power = (int64_t{1} << (1 + any(62))) + any(3) - 1;
    const int64_t divisors[] = {2 + any(1000), near_power, kLargest - any(3), any(kLargest)};
    for (const int64_t candidate : divisors) {
      const int64_t b = std::max<int64_t>(candidate, 2);
      const PositiveDivisor divisor(b);
      const int64_t multiple = b * any(kLargest / b + 1);
      const int64_t numerators[] = {static_cast<int64_t>(random()),
                                    any(2000) - 1000,
                                    kLargest - any(3),
                                    -kLargest - 1 + any(3),
                                    multiple,
                                    multiple - 1,
                                    -multiple,
                                    -multiple - 1};
      for (const int64_t a : numerators) {
        const int64_t want = IntegerResult<IntegerOperation::kFloorDivide>(a, b);
        ASSERT_EQ(divisor.FloorDivide(a), want) << a << " / " << b;
      }
    }
  }
}

}  // namespace
}  // namespace zg
