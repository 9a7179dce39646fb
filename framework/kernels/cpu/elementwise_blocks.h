// The arithmetic of every elementwise op: one function per op that computes a contiguous block. The
// op's own kernel and fused_elementwise run the same function, and so give the same bits.
#pragma once

#include <cstdint>
#include <string_view>

namespace zg {

// Elements: a handful of blocks in f32 fit the first-level cache.
inline constexpr int64_t kElementwiseBlock = 2048;

// A block's sources: block[i][k] is element k of input i.
using BlockInputs = const float* const*;

struct ElementwiseOp {
  std::string_view name;
  int num_inputs = 1;
  std::string_view scalar_attribute;  // empty: none
  // out[k] for k < count; `out` may be one of the inputs.
  void (*run)(BlockInputs inputs, float scalar, int64_t count, float* out) = nullptr;
};

// Null when there is no elementwise op of this name.
const ElementwiseOp* FindElementwiseOp(std::string_view name);

}  // namespace zg
