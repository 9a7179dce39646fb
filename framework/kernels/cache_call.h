// The calls of framework/ops/cache.cc as the kernels of both devices see them.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>

#include "framework/kernels/kernel.h"

namespace zg {

// cached_rows and keep_rows, whose inputs are rows and start, and write_rows, whose first is a cache.
struct CacheCall {
  int rows_input;
  int start_input;
  int64_t batch;
  int64_t size;  // rows of the cache
  int64_t new_rows;
  int64_t row_bytes;
  int64_t start_stride;  // 0: one start for all texts

  CacheCall(const KernelSpec& spec, bool has_cache)
      : rows_input(has_cache ? 1 : 0), start_input(rows_input + 1) {
    const Shape& rows = spec.call.inputs[rows_input].shape;
    batch = rows.dim(0);
    new_rows = rows.dim(1);
    size = spec.outputs[0].shape.dim(1);
    row_bytes = rows.dim(2) * SizeOf(spec.outputs[0].dtype);
    start_stride = StartStride(spec.call.inputs[start_input]);
  }

  static int64_t StartStride(const TensorType& start) { return start.shape == Shape{1} ? 0 : 1; }
};

// cached_attention as the equivalent call of dot_product_attention. Its keys are whole caches, of
// which a text sees those up to its last query. The last input, start, is none of its.
inline ir::OpCall LikeAttention(ir::OpCall call) {
  call.inputs.pop_back();
  call.attributes.Set("causal", true);
  call.attributes.Set("masked", false);
  const size_t num_sinks = call.attributes.Bool("has_sinks") ? 1 : 0;
  call.attributes.Set("biased", call.inputs.size() - num_sinks > 3);
  return call;
}

// move_texts.
struct MoveTextsCall {
  int64_t texts;
  int64_t size;  // rows of the cache
  int64_t row_bytes;
  int64_t start_stride;

  explicit MoveTextsCall(const KernelSpec& spec) {
    const TensorType& cache = spec.call.inputs[0];
    texts = cache.shape.dim(0);
    size = cache.shape.dim(1);
    row_bytes = cache.shape.dim(2) * SizeOf(cache.dtype);
    start_stride = CacheCall::StartStride(spec.call.inputs[2]);
  }
};

inline std::string NoSuchParent(int64_t parent, int64_t texts) {
  return fmt::format("move_texts: a text goes on from text {}, expected 0 to {}", parent,
                     texts - 1);
}

inline std::string StartOutsideCache(const char* op, int64_t start, int64_t new_rows,
                                     int64_t size) {
  return fmt::format("{}: {} rows from {} on, the cache has rows 0 to {}", op, new_rows, start,
                     size - 1);
}

}  // namespace zg
