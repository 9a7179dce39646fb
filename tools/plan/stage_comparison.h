// CompareStages: the job at every ZeRO stage, and where a higher stage needs more memory than a
// lower one. On small models it can: a bucket in flight outweighs what sharding saves.
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"
#include "tools/plan/job_plan.h"

namespace zg::plan {

struct StageComparison {
  std::vector<JobPlan> plans;         // of stages 0 to 3
  std::vector<std::string> warnings;  // one per stage that needs more than some lower one
};

// `plan` is the job at its own stage, which is not planned again.
StatusOr<StageComparison> CompareStages(const JobPlan& plan);

// Of plans in the order of their stages.
std::vector<std::string> WarnOfHigherStages(const std::vector<JobPlan>& plans);

}  // namespace zg::plan
