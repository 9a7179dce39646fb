// FindFront: searches for the mesh, the stages by name, the recomputation and the micro-batch with
// which a job fits into the memory of a rank, and returns the Pareto front of memory and time. The
// samples per step are kept: a micro-batch half as large means twice as many.
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
  // The fastest first; each needs at least 5 % less memory than the one before, and at least 1 %
  // more time.
  std::vector<FitPoint> points;
  int num_candidates = 0;  // number of estimated candidates
  int num_compiled = 0;
};

// All candidates (fit_candidates.h) are estimated. Those on the front of estimated memory and time
// are compiled, until all points of the front are plans, at most 20. Error: nothing fits; the
// message names the smallest candidate, the missing memory, and what would fit.
StatusOr<FitFront> FindFront(const PlanOptions& options, int64_t budget_bytes);

// The front as a table, and the command that runs each point.
std::string FrontText(const FitFront& front, int64_t budget_bytes);

}  // namespace zg::plan
