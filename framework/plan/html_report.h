// The plan as one self-contained HTML page: memory over the step stacked by category, the buffers
// that are alive at the pointer, and the schedule.
#pragma once

#include <string>

#include "framework/plan/plan_report.h"

namespace zg::plan {

std::string HtmlReport(const PlanReport& report);

// The page without its data, whose place is marked by `%DATA%`.
extern const char kHtmlPage[];

}  // namespace zg::plan
