// The factor of a norm, as kernels of all devices compute it.
#pragma once

#include "framework/base/host_device.h"
#include "framework/kernels/math/elementary_math.h"

namespace zg {

// 1 / sqrt(variance + epsilon). NaN if the variance is infinite: rows that have diverged must not come
// out as zeros, and look sound from there on.
ZG_HOST_DEVICE ZG_INLINE float InverseDeviation(float variance, float epsilon) {
  return 1.0f / elementwise::Sqrt(variance + epsilon) + (variance - variance);
}

}  // namespace zg
