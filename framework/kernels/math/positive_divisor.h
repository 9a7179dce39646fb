// Division of many i64 by one number, as a multiplication: exact, and much faster than the
// processor's division.
//
// Source: Granlund and Montgomery, Division by invariant integers using multiplication, 1994,
// theorem 4.2 with numerators below 2^63.
#pragma once

#include <cstdint>

#include "framework/base/host_device.h"

namespace zg {

class PositiveDivisor {
 public:
  // Requires divisor >= 2.
  explicit PositiveDivisor(int64_t divisor)
      : shift_(63 - __builtin_clzll(static_cast<uint64_t>(divisor) - 1)),
        factor_(static_cast<uint64_t>((Wide{1} << (64 + shift_)) / static_cast<uint64_t>(divisor)) +
                1) {}

  // a / divisor, rounded towards minus infinity.
  ZG_INLINE int64_t FloorDivide(int64_t a) const {
    const auto sign =
        static_cast<uint64_t>(a >> 63);  // all ones for a < 0, where -1 - a is divided
    const uint64_t numerator = static_cast<uint64_t>(a) ^ sign;
    return static_cast<int64_t>((static_cast<uint64_t>(Wide{factor_} * numerator >> 64) >> shift_) ^
                                sign);
  }

 private:
  __extension__ using Wide = unsigned __int128;

  int shift_;  // the bits of divisor - 1, less one
  uint64_t factor_;
};

}  // namespace zg
