// Fold: the sum of the contributions of several ranks in the order that the types ask for.
#pragma once

#include <cstdint>

#include "framework/comm/reduction_types.h"

namespace zg {

// Like LeftFold (left_fold.h), in the order of `types`. A pairwise sum continues none.
void Fold(ReductionTypes types, bool continues, const void* const* inputs, int num_inputs,
          int64_t elements, void* output);

}  // namespace zg
