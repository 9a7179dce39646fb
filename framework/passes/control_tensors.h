// Control tensors: f32 states that belong to a program rather than to a parameter. They decide
// whether updates are applied and count them. A program's options determine which of them it has,
// so they may differ when a checkpoint is resumed.
#pragma once

#include <cstdint>

namespace zg {

inline constexpr char kLossScaler[] = "loss_scaler";        // ops/loss_scaling.h
inline constexpr char kUpdateCounter[] = "update_counter";  // ops/gradient_norm.h

struct ControlTensor {
  const char* name;
  int64_t elements;
  int64_t updates;  // index of the element that counts updates of the parameters
};
inline constexpr ControlTensor kControlTensors[] = {{kLossScaler, 4, 2}, {kUpdateCounter, 2, 0}};
inline constexpr int64_t kMaxControlElements = 4;

}  // namespace zg
