// Writes a plan to files.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "framework/plan/plan_report.h"

namespace zg::plan {

// Each file is written under a temporary name first; "": not written. Error: a file that cannot be
// written.
Status WritePlan(const PlanReport& report, const std::string& json_path,
                 const std::string& html_path);

}  // namespace zg::plan
