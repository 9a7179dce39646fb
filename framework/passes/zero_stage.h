// The ZeRO stage from which variables of a role are sharded: the only definition of it, for passes,
// formulas and reports.
#pragma once

#include "framework/ir/role.h"

namespace zg {

inline constexpr int kLastStage = 3;

// kLastStage + 1 for roles that stay whole on every rank.
constexpr int FirstStageThatShards(Role role) {
  switch (role) {
    case Role::kOptimizerState:
    case Role::kMaster:
      return 1;
    case Role::kGradient:
      return 2;
    case Role::kParameter:
      return 3;
    case Role::kAccumulator:
    case Role::kControl:
    case Role::kBuffer:
      break;
  }
  return kLastStage + 1;
}

}  // namespace zg
