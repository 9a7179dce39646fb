// Role: the purpose of a variable in training, its attribute `role`. Passes, checkpoints and
// reports ask for it. Other properties are derived from it: how its memory is counted
// (memory_category.h), and from which stage on ZeRO shards it (passes/zero_stage.h).
#pragma once

#include <string_view>

#include "framework/base/enum_names.h"
#include "framework/base/status.h"

namespace zg {

enum class Role {
  kParameter,       // the model reads it and an optimizer updates it, unless it is not `trainable`
  kMaster,          // the f32 original of a parameter that the model reads as a 16-bit copy
  kGradient,        // the sum of gradients of parameters over the micro-batches of a step
  kOptimizerState,  // optimizer state of a parameter, such as moments
  kAccumulator,     // any other sum over the micro-batches of a step, such as the loss
  kControl,         // decides whether updates are applied and counts them: loss scale, counters
  kBuffer,          // state of the model without a gradient, such as running means
};
template <>
struct EnumNames<Role> {
  static constexpr std::string_view kNames[] = {
      "parameter", "master", "gradient", "optimizer_state", "accumulator", "control", "buffer"};
};

StatusOr<Role> ParseRole(std::string_view name);

// Whether variables of the role belong to the model itself, and so to its weights file. The rest is
// the state of training.
constexpr bool IsOfModel(Role role) {
  return role == Role::kParameter || role == Role::kMaster || role == Role::kBuffer;
}

}  // namespace zg
