// CompareStages: the job at every ZeRO stage, with warnings where a higher stage needs more memory
// than a lower one. That can happen on small models: a bucket in flight outweighs what sharding
// saves.
#pragma once

#include <string>
#include <vector>

#include "framework/plan/job_plan.h"

namespace zg::plan {

struct StageComparison {
  std::vector<JobPlan> plans;         // of stages 0 to 3, and of a mixture if requested
  std::vector<std::string> warnings;  // one per stage that needs more than some lower one
};

// `plans` are those of stages 0 to 3, in order, and optionally that of a mixture, which gets no
// warning.
StageComparison CompareStages(std::vector<JobPlan> plans);

}  // namespace zg::plan
