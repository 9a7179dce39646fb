// The plan as tables for people.
#pragma once

#include <string>

#include "framework/plan/plan_report.h"

namespace zg::plan {

std::string TextReport(const PlanReport& report);

}  // namespace zg::plan
