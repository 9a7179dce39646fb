// The factor by which clipping scales gradients.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/base/host_device.h"

namespace zg {

// min(1, max_norm / (norm + 1e-6)), as in torch.nn.utils.clip_grad_norm_; 1 if max_norm is 0. A
// factor of 0 would tell the update nodes to change nothing, and an infinite norm would go
// unnoticed; so the factor becomes NaN instead, and with it the parameters.
ZG_HOST_DEVICE inline double ClipFactor(double norm, double max_norm) {
  if (max_norm == 0.0) return 1.0;
  if (!std::isfinite(norm)) return std::numeric_limits<double>::quiet_NaN();
  const double factor = std::min(1.0, max_norm / (norm + 1e-6));
  return std::max(factor, static_cast<double>(std::numeric_limits<float>::min()));
}

}  // namespace zg
