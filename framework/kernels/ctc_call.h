// The sizes and operands of a call of ctc_loss or its gradient (framework/ops/ctc_loss.cc), for the
// kernels of both devices. `first` is the operand with the log probabilities; the others follow it.
#pragma once

#include <cstdint>

#include "framework/base/host_device.h"
#include "framework/kernels/kernel.h"

namespace zg {

struct CtcShape {
  static CtcShape Of(const ir::OpCall& call, int first) {
    const Shape& shape = call.inputs[first].shape;
    return {shape.dim(0), shape.dim(1), shape.dim(2), call.inputs[first + 1].shape.dim(1),
            call.attributes.Int("blank")};
  }

  int64_t samples;
  int64_t steps;
  int64_t classes;
  int64_t labels;  // the most of a target
  int64_t blank;

  ZG_HOST_DEVICE int64_t max_states() const { return 2 * labels + 1; }
};

struct CtcOperands {
  CtcOperands(const KernelArguments& arguments, int first)
      : log_probabilities(arguments.input<float>(first)),
        targets(arguments.input<int64_t>(first + 1)),
        input_lengths(arguments.input<int64_t>(first + 2)),
        target_lengths(arguments.input<int64_t>(first + 3)) {}

  const float* log_probabilities;
  const int64_t* targets;
  const int64_t* input_lengths;
  const int64_t* target_lengths;
};

}  // namespace zg
