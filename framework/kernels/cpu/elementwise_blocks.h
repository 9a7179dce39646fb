// The arithmetic of every elementwise op: one function per op and dtype that computes a contiguous
// block. The op's own kernel and fused_elementwise run the same function, and so give the same
// bits.
#pragma once

#include <cstdint>
#include <string_view>

#include "framework/tensor/dtype.h"

namespace zg {

// Elements: a handful of blocks fit the first-level cache.
inline constexpr int64_t kElementwiseBlock = 2048;

// out[k] for k < count from element k of every input, all of one dtype: computed in f32, and
// rounded once. `out` may be one of the inputs.
using ElementwiseFunction = void (*)(const void* const* inputs, float scalar, int64_t count,
                                     void* out);

struct ElementwiseOp {
  std::string_view name;
  int num_inputs = 1;
  std::string_view scalar_attribute;  // empty: none
  ElementwiseFunction f32 = nullptr;
  ElementwiseFunction bf16 = nullptr;
  ElementwiseFunction f16 = nullptr;

  ElementwiseFunction function(DType dtype) const;
};

// Null when there is no elementwise op of this name.
const ElementwiseOp* FindElementwiseOp(std::string_view name);

}  // namespace zg
