// The calls of framework/ops/selective_scan.cc as the kernels of both devices see them.
#pragma once

#include <cstdint>

#include "framework/ir/op_def.h"

namespace zg {

struct SelectiveScanCall {
  int64_t samples;
  int64_t steps;
  int64_t channels;
  int64_t states;  // of each channel

  // A call whose operands x, step, a, ... begin at `first`.
  SelectiveScanCall(const ir::OpCall& call, int first) {
    const Shape& x = call.inputs[first].shape;
    samples = x.dim(0);
    steps = x.dim(1);
    channels = x.dim(2);
    states = call.inputs[first + 2].shape.dim(1);
  }

  // Elements of each sample.
  int64_t of_channels() const { return steps * channels; }
  int64_t of_states() const { return steps * states; }
  int64_t of_state() const { return channels * states; }
};

// The gradient computes the states again, so many steps at once, from those that it has kept.
inline constexpr int64_t kScanChunk = 16;

}  // namespace zg
