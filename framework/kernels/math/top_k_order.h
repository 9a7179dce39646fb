// The order in which top_k lists elements, on every device.
#pragma once

#include <cstdint>

#include "framework/base/host_device.h"

namespace zg {

// An element; for the smallest ones the values are negated.
struct RankedElement {
  float value;
  int64_t index;
};

// NaN comes before every number, larger values before smaller ones, and the lower index first among
// equal ones.
ZG_HOST_DEVICE ZG_INLINE bool ComesBefore(RankedElement a, RankedElement b) {
  const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
  if (a_is_nan != b_is_nan) return a_is_nan;
  if (a.value > b.value) return true;
  if (a.value < b.value) return false;
  return a.index < b.index;
}

}  // namespace zg
