// What eval programs draw their random values from instead of the seed of training.
#pragma once

#include <cstdint>

#include "framework/base/random.h"

namespace zg {

// Other than `seed`, and other after each step.
inline uint64_t SeedOfEvals(uint64_t seed, int64_t steps_done) {
  return FoldIn(FoldIn(RandomKey{seed}, "eval"), static_cast<uint64_t>(steps_done)).seed;
}

}  // namespace zg
