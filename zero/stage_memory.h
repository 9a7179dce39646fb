// What other stages would need where one does not fit: an estimate from its plan, to be told with
// the error.
#pragma once

#include <cstdint>
#include <string>

#include "framework/passes/plan_memory.h"

namespace zg::zero {

// Of the plan of one rank.
struct StageMemory {
  int stage = 0;
  int ranks = 1;
  int64_t arena_bytes = 0;
  CategoryBytes category_bytes = {};
  int64_t bucket_bytes = 0;
};

// The arena at another stage: what a stage divides among the ranks changes, the rest stays; from
// stage 2 on a bucket of gradients is in flight, at stage 3 one of parameters too.
int64_t EstimateArenaBytes(const StageMemory& memory, int stage);

// "stage 2 needs about 1.5 GiB, which fits"; what to do when no stage fits; empty when the arena
// fits as it is.
std::string StageHint(const StageMemory& memory, int64_t available_bytes);

}  // namespace zg::zero
