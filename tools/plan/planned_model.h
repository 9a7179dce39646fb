// PlanModel: the plan of one of //models with the given sizes and flags.
#pragma once

#include "framework/base/status.h"
#include "framework/plan/plan_report.h"
#include "tools/plan/plan_options.h"

namespace zg::plan {

// The options must be resolved. Errors: those of building and compiling the model.
StatusOr<PlanReport> PlanModel(const PlanOptions& options, bool compare_stages);

// Its plan at its own stage.
StatusOr<JobPlan> PlanModel(const PlanOptions& options);

}  // namespace zg::plan
