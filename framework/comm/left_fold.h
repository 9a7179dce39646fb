// LeftFold: the sum of the contributions of several ranks, the same on every transport. Each
// element is summed in the order of the inputs, one addition at a time, so the bits do not depend
// on the instruction set, on how a buffer is cut into parts, or on which rank does the work.
#pragma once

#include <cstdint>

#include "framework/comm/reduction_types.h"

namespace zg {

// output[i] = ((inputs[0][i] + inputs[1][i]) + inputs[2][i]) + ... for i < elements. With
// `continues`, inputs[0] is a sum to continue, which is in f32 for 16-bit terms; the others are terms.
// Needs at least one input; `output` may be one of them if it has the same type, and must not overlap
// any other.
void LeftFold(ReductionTypes types, bool continues, const void* const* inputs, int num_inputs,
              int64_t elements, void* output);

}  // namespace zg
