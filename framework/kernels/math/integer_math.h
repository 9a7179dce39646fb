// Arithmetic of i64 elements. Overflow wraps around, as in two's complement.
#pragma once

#include <cstdint>

#include "framework/base/host_device.h"

namespace zg {

enum class IntegerOperation {
  kAdd,
  kSubtract,
  kMultiply,
  kMaximum,
  kMinimum,
  kFloorDivide,  // by b > 0, rounded towards minus infinity
  kRemainder,    // of that division, in [0, b)
};

template <IntegerOperation kOperation>
ZG_HOST_DEVICE ZG_INLINE int64_t IntegerResult(int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  if constexpr (kOperation == IntegerOperation::kAdd) return static_cast<int64_t>(ua + ub);
  if constexpr (kOperation == IntegerOperation::kSubtract) return static_cast<int64_t>(ua - ub);
  if constexpr (kOperation == IntegerOperation::kMultiply) return static_cast<int64_t>(ua * ub);
  if constexpr (kOperation == IntegerOperation::kMaximum) return a < b ? b : a;
  if constexpr (kOperation == IntegerOperation::kMinimum) return b < a ? b : a;
  if constexpr (kOperation == IntegerOperation::kFloorDivide) return a / b - (a % b < 0 ? 1 : 0);
  // By the sign bit: a branch on a remainder's sign would often be mispredicted.
  if constexpr (kOperation == IntegerOperation::kRemainder) return a % b + ((a % b >> 63) & b);
}

}  // namespace zg
