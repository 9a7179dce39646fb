// FindFront: with which mesh, stages by name, recomputation and micro-batch a job fits into the
// memory of a rank, and which of these ways are worth their memory or their time. Samples per step
// stay as they are: a micro-batch half as large means twice as many.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/plan/job_plan.h"
#include "tools/plan/plan_options.h"

namespace zg::plan {

struct FitPoint {
  PlanOptions options;
  JobPlan plan;
};

struct FitFront {
  // The fastest first; each needs less memory than the one before, by 5 % or more, and at least 1 %
  // more time.
  std::vector<FitPoint> points;
  int num_candidates = 0;  // estimated
  int num_compiled = 0;
};

// All candidates (fit_candidates.h) are estimated; those on the front of estimated memory and time
// are compiled, until all points of the front are plans, and not more than 14. Error:
// nothing fits; says what needs the least, by how much it is too much, and what would fit.
StatusOr<FitFront> FindFront(const PlanOptions& options, int64_t budget_bytes);

// The front as a table, and the command that runs each point.
std::string FrontText(const FitFront& front, int64_t budget_bytes);

}  // namespace zg::plan
