// The states of a target of ctc_loss (framework/ops/ctc_loss.cc), and sums of probabilities, in
// logarithms. A target of U labels has the states 0, ..., 2U: its labels are the odd ones, with blanks
// around them. A path goes from a state to itself, to the next one, or over a blank between different
// labels.
#pragma once

#include <cmath>
#include <cstdint>

#include "framework/base/host_device.h"
#include "framework/kernels/math/vector_math.h"

namespace zg {

inline constexpr float kImpossible = -HUGE_VALF;  // the logarithm of 0

struct CtcTarget {
  const int64_t* labels;
  int64_t length;
  int64_t blank;

  ZG_HOST_DEVICE int64_t num_states() const { return 2 * length + 1; }
  ZG_HOST_DEVICE int64_t ClassOf(int64_t state) const {
    return state % 2 == 0 ? blank : labels[state / 2];
  }
  // Whether a path may come from two states before.
  ZG_HOST_DEVICE bool MaySkipTo(int64_t state) const {
    return state % 2 == 1 && state >= 3 && labels[state / 2] != labels[state / 2 - 1];
  }
};

// ln(e^a + e^b + e^c).
ZG_HOST_DEVICE ZG_INLINE float LogOfSum(float a, float b, float c) {
  const float of_two = a > b ? a : b;
  const float largest = of_two > c ? of_two : c;
  const float base = largest > kImpossible ? largest : 0.0f;
  const float sum = (ExpOfNotHigh(a - base) + ExpOfNotHigh(b - base)) + ExpOfNotHigh(c - base);
  const float log = Log<Fused>(sum) + base;
  return largest > kImpossible ? log : kImpossible;
}

// The probability of being in a state at a step, given the text: from the paths that lead there and
// those that go on from there, which both have the step's own class.
ZG_HOST_DEVICE ZG_INLINE float ShareOfState(float to_state, float from_state, float emission,
                                            float log_likelihood) {
  const float both = to_state + from_state;
  const float share = ExpOfNotHigh(both - emission - log_likelihood);
  return both > kImpossible ? share : 0.0f;
}

}  // namespace zg
