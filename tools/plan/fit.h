// FindFit: with which stage, recomputation and micro-batch a job fits into the memory of a rank.
// Samples per step stay as they are: a micro-batch half as large means twice as many.
#pragma once

#include <cstdint>

#include "framework/base/status.h"
#include "framework/plan/job_plan.h"
#include "tools/plan/plan_options.h"

namespace zg::plan {

// The options of the first that fits: the largest divisor of options.batch first, for each first
// without recomputing a gpt's blocks, and for each of these the smallest stage first. Error:
// nothing fits; says what needs the least, by how much it is too much, and what would fit.
StatusOr<PlanOptions> FindFit(const PlanOptions& options, int64_t budget_bytes);

}  // namespace zg::plan
