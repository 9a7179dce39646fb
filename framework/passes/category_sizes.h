// CategorySizes: the size of each category of memory in a plan, for messages.
#pragma once

#include <string>

#include "framework/passes/plan_memory.h"

namespace zg {

// "parameters 1.2 GB, gradients 600.0 MB, ...", each the most that is alive at a time.
std::string CategorySizes(const MemoryPlan& plan);

}  // namespace zg
