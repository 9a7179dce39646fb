// The ZeRO paper's arithmetic for a number of parameters: every stage, in the paper's GB of 10^9
// bytes (zero/memory_model.h).
#pragma once

#include <string>

#include "framework/base/status.h"
#include "tools/plan/plan_options.h"

namespace zg::plan {

StatusOr<std::string> PaperTable(const PlanOptions& options);
StatusOr<std::string> PaperJson(const PlanOptions& options);

}  // namespace zg::plan
