// The loss scaler's state, as kernels of all devices read and write it.
#pragma once

#include <cstdint>

#include "framework/base/host_device.h"

namespace zg {

// Decoded from the state's elements, which are small integers, exact in f32.
struct LossScaler {
  int initial_exponent;
  int exponent;
  int64_t steps_unchanged;
  int64_t updates;
  int64_t skipped;

  ZG_HOST_DEVICE LossScaler(int initial, const float* state)
      : initial_exponent(initial),
        exponent(initial + static_cast<int>(state[0])),
        steps_unchanged(static_cast<int64_t>(state[1])),
        updates(static_cast<int64_t>(state[2])),
        skipped(static_cast<int64_t>(state[3])) {}

  ZG_HOST_DEVICE void Store(float* state) const {
    state[0] = static_cast<float>(exponent - initial_exponent);
    state[1] = static_cast<float>(steps_unchanged);
    state[2] = static_cast<float>(updates);
    state[3] = static_cast<float>(skipped);
  }
};

}  // namespace zg
