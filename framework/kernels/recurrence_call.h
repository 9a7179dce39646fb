// The sizes of a call of a recurrent layer or its gradient (framework/ops/recurrence.cc), for the
// kernels of both devices.
#pragma once

#include <cstdint>

#include "framework/base/host_device.h"
#include "framework/kernels/kernel.h"

namespace zg {

struct RecurrenceCall {
  explicit RecurrenceCall(const ir::OpCall& call)
      : samples(call.inputs[0].shape.dim(0)),
        steps(call.inputs[0].shape.dim(1)),
        hidden(call.inputs[1].shape.dim(1)),
        gates(call.inputs[1].shape.dim(0) / call.inputs[1].shape.dim(1)),
        dtype(call.inputs[0].dtype),
        from_end(call.attributes.Bool("from_end")) {}

  // The element that is the i-th to be read.
  int64_t StepAt(int64_t i) const { return from_end ? steps - 1 - i : i; }

  int64_t samples;
  int64_t steps;
  int64_t hidden;
  int64_t gates;
  DType dtype;
  bool from_end;
};

// The operands of lstm_grad that a call may lack; -1: it does.
struct LstmGradOperands {
  explicit LstmGradOperands(const ir::OpCall& call) {
    const int num_inputs = static_cast<int>(call.inputs.size());
    const bool has_states = call.attributes.Bool("has_states");
    if (has_states) c = num_inputs - 1;
    if (num_inputs - (has_states ? 1 : 0) > 4) dc = 4;
  }

  int dc = -1;
  int c = -1;  // before the first element
};

}  // namespace zg
