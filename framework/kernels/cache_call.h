// The calls of framework/ops/cache.cc as the kernels of both devices see them.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>

#include "framework/kernels/kernel.h"

namespace zg {

// cached_rows, keep_rows and write_rows: inputs are the cache, if there is one, rows and start.
struct CacheCall {
  int rows_input;
  int start_input;
  int64_t batch;
  int64_t size;  // rows of the cache
  int64_t new_rows;
  int64_t row_bytes;
  int64_t start_stride;  // 0: one start for all texts

  explicit CacheCall(const KernelSpec& spec)
      : rows_input(static_cast<int>(spec.call.inputs.size()) - 2), start_input(rows_input + 1) {
    const Shape& rows = spec.call.inputs[rows_input].shape;
    batch = rows.dim(0);
    new_rows = rows.dim(1);
    size = spec.outputs[0].shape.dim(1);
    row_bytes = rows.dim(2) * SizeOf(spec.outputs[0].dtype);
    start_stride = StartStride(spec.call.inputs[start_input]);
  }

  bool has_cache() const { return rows_input > 0; }
  static int64_t StartStride(const TensorType& start) { return start.shape == Shape{1} ? 0 : 1; }
};

// cached_attention as the equivalent call of dot_product_attention. Its keys are whole caches, of
// which a text sees those up to its last query. The last input, start, is none of its.
inline ir::OpCall LikeAttention(ir::OpCall call) {
  call.inputs.pop_back();
  call.attributes.Set("causal", true);
  call.attributes.Set("masked", false);
  call.attributes.Set("biased", call.inputs.size() > 3);
  return call;
}

inline std::string StartOutsideCache(const char* op, int64_t start, int64_t new_rows,
                                     int64_t size) {
  return fmt::format("{}: {} rows from {} on, the cache has rows 0 to {}", op, new_rows, start,
                     size - 1);
}

}  // namespace zg
