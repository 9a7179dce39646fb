// The plan as one JSON object. `memory.predicted` and `communication.predicted` have the keys of a
// run's report (framework/job/report.h), so that scripts can compare them.
#pragma once

#include <string>

#include "framework/plan/plan_report.h"

namespace zg::plan {

std::string JsonReport(const PlanReport& report);

}  // namespace zg::plan
