// PlanReport: what tools/plan answers, ready to be printed or written in any of its formats.
#pragma once

#include <optional>

#include "tools/plan/job_plan.h"
#include "tools/plan/stage_comparison.h"

namespace zg::plan {

struct PlanReport {
  std::vector<ResolvedFlag> config;
  JobPlan plan;  // of the job asked for; with --fit, of the one that fits
  std::optional<int64_t> fit_bytes;
  std::optional<StageComparison> stages;
};

}  // namespace zg::plan
