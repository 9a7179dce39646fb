// The ZeRO paper's model states: parameters, gradients and optimizer state of one rank.
#pragma once

#include "framework/plan/job_plan.h"

namespace zg::plan {

inline double ModelStateBytesOf(const JobPlan& plan) {
  int64_t bytes = 0;
  for (const MemoryCategory category :
       {MemoryCategory::kParameters, MemoryCategory::kGradients, MemoryCategory::kOptimizerState}) {
    bytes += plan.category_bytes[static_cast<int>(category)];
  }
  return static_cast<double>(bytes);
}

}  // namespace zg::plan
