// LeftFold: the one way in which contributions of several ranks become a sum. Each element is added
// up in the order of the inputs, one addition at a time, so that the bits do not depend on the
// instruction set, on how a buffer is cut into parts, or on which rank does the work.
#pragma once

#include <cstdint>

#include "framework/tensor/dtype.h"

namespace zg {

// output[i] = ((inputs[0][i] + inputs[1][i]) + inputs[2][i]) + ... for i < elements, in f32 or i64.
// Needs at least one input; `output` may be one of them and overlaps no other.
void LeftFold(DType dtype, const void* const* inputs, int num_inputs, int64_t elements,
              void* output);

}  // namespace zg
