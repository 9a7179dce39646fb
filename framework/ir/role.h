// Role: what a variable is to training, its attribute `role`. Passes, checkpoints and reports ask
// for it. What follows from it is computed: how its memory is counted (memory_category.h), and from
// which ZeRO stage on it is sharded (passes/zero_stage.h).
#pragma once

#include <string_view>

#include "framework/base/enum_names.h"
#include "framework/base/status.h"

namespace zg {

enum class Role {
  kParameter,       // what the model reads and an optimizer updates, unless it is not `trainable`
  kMaster,          // the f32 original of a parameter that the model reads as a 16-bit copy
  kGradient,        // the sum of gradients of parameters over the micro-batches of a step
  kOptimizerState,  // what an optimizer remembers of a parameter, such as moments
  kAccumulator,     // any other sum over the micro-batches of a step, such as the loss
  kControl,         // decides about updates and counts them: loss scale, counters
  kBuffer,          // state of the model without a gradient, such as running means
};
template <>
struct EnumNames<Role> {
  static constexpr std::string_view kNames[] = {
      "parameter", "master", "gradient", "optimizer_state", "accumulator", "control", "buffer"};
};

StatusOr<Role> ParseRole(std::string_view name);

// Whether variables of the role are the model itself, which its weights' file holds. The rest is
// the state of training.
constexpr bool IsOfModel(Role role) {
  return role == Role::kParameter || role == Role::kMaster || role == Role::kBuffer;
}

}  // namespace zg
