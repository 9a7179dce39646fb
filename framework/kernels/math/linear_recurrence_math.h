// One step of a linear recurrence (ops/linear_recurrence.cc) and of its gradient, of a float or of
// a vector of them. `state` is what a step hands to the next one, 0 before the first.
#pragma once

#include "framework/base/host_device.h"

namespace zg {

// Returns h_i. What is handed on is h_i, or with kLeaving decay_i h_i.
template <bool kLeaving, typename Number>
ZG_HOST_DEVICE ZG_INLINE Number NextOfRecurrence(Number decay, Number x, Number& state) {
  if constexpr (kLeaving) {
    const Number h = state + x;
    state = decay * h;
    return h;
  } else {
    return state = decay * state + x;
  }
}

// The gradients dx_i and ddecay_i. `h` is h_(i-1), or with kLeaving h_i.
template <typename Number>
struct RecurrenceGradients {
  Number ddecay;
  Number dx;
};
template <bool kLeaving, typename Number>
ZG_HOST_DEVICE ZG_INLINE RecurrenceGradients<Number> NextOfRecurrenceGrad(Number dh, Number decay,
                                                                          Number h, Number& state) {
  const Number dx_after = state;  // with kLeaving
  const Number dx = NextOfRecurrence<!kLeaving>(decay, dh, state);
  return {kLeaving ? h * dx_after : dx * h, dx};
}

}  // namespace zg
