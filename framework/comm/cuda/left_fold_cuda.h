// The sum of one part over the ranks on a GPU, with fold_element.h for each element.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/base/status.h"
#include "framework/comm/fold_element.h"
#include "framework/comm/reduction_types.h"

namespace zg {

// Queues it on `stream`, a cudaStream_t. All pointers are to device memory.
Status LeftFoldOnCuda(ReductionTypes types, const FoldInputs& inputs, int64_t elements,
                      std::byte* output, void* stream);

}  // namespace zg
