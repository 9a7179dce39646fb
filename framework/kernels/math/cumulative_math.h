// One step of running results along a dim, on every device.
#pragma once

#include "framework/base/host_device.h"
#include "framework/kernels/math/elementwise_math.h"

namespace zg {

// ln(e^a + e^b): the larger one, and ln(1 + e^-distance).
ZG_HOST_DEVICE ZG_INLINE float LogAddExp(float a, float b) {
  const float high = a > b ? a : b;
  const float low = a > b ? b : a;
  const float sum = elementwise::Log1pPlus(ExpOfNotHigh(low - high), high);
  const float y = ((low > -__builtin_inff()) & (high < __builtin_inff())) ? sum : high;
  return ((a != a) | (b != b)) ? a + b : y;
}

// Whether an element takes the place of the largest one before it, of which NaN is one.
ZG_HOST_DEVICE ZG_INLINE bool IsNewMaximum(float x, float largest) {
  return (x > largest) | ((x != x) & (largest == largest));
}

}  // namespace zg
