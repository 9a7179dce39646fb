// The arithmetic of every elementwise op: one function per op and dtype that computes a contiguous
// block. The op's own kernel and fused_elementwise run the same function, and so give the same
// bits.
#pragma once

#include <cstdint>

#include "framework/ops/elementwise_table.h"
#include "framework/tensor/dtype.h"

namespace zg {

// In elements: a few blocks fit into the first-level cache.
inline constexpr int64_t kElementwiseBlock = 2048;

// out[k] for k < count from element k of every input, all of one dtype: computed in f32 and rounded
// once. `scalar` is the op's attribute. `out` may be one of the inputs.
using ElementwiseFunction = void (*)(const void* const* inputs, float scalar, int64_t count,
                                     void* out);

ElementwiseFunction FunctionOf(ElementwiseCode code, DType dtype);

}  // namespace zg
