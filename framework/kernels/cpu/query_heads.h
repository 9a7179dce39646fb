// Attention of one query, the step that decodes a token, with the bits of attention_head.h. Each head
// of keys and values is packed once, in parts that stay in the first-level cache, for all heads of
// queries that use it: memory bandwidth decides here.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/attention_blocks.h"
#include "framework/kernels/cpu/attention_scratch.h"

namespace zg {

// The shape is that of cached_attention.
inline bool IsOneQuery(const AttentionShape& shape) {
  return shape.queries == 1 && shape.window == 0;
}

// Keys of a part: whole units of every method, and not more than the first-level cache holds.
inline constexpr int64_t kPartKeys = 64;

// Matrices have a row for each head of queries in the group, and are padded to whole units.
struct QueryScratch {
  int64_t score_stride;
  float* queries;  // packed
  float* part;     // of keys or values, packed
  float* scores;
  float* weights;  // rounded in 16 bits, else in the place of the scores
  float* packed_weights;
  float* sums;  // in 16 bits; in f32 they are in the result
  float* weight_sums;

  QueryScratch(const AttentionShape& shape, Carver& carver)
      : score_stride(RoundUp(shape.keys, kPartKeys)),
        queries(carver.Take(shape.method->PackedASize(shape.group(), shape.head_size))),
        part(carver.Take(std::max(shape.method->PackedBSize(kPartKeys, shape.head_size),
                                  shape.method->PackedBSize(shape.head_size, kPartKeys)))),
        scores(carver.Take(RoundUp(shape.group(), shape.method->row_unit) * score_stride)),
        weights(shape.dtype == DType::kF32 ? scores
                                           : carver.Take(shape.group() * score_stride / 2)),
        packed_weights(carver.Take(shape.method->PackedASize(shape.group(), kPartKeys))),
        sums(
            carver.Take(shape.dtype == DType::kF32
                            ? 0
                            : RoundUp(shape.group(), shape.method->row_unit) * shape.sum_stride())),
        weight_sums(carver.Take(shape.group())) {}
};

// The heads of queries that use one head of keys.
struct QueryHeads {
  HeadInput q;       // of the first of them; the others lie behind it. Likewise bias and out
  const void* bias;  // null: none
  HeadOutput out;
  int64_t first;  // its index
};

// Must be called within a GemmScope.
void RunQueryHeads(const AttentionShape& shape, const KernelArguments& arguments,
                   const QueryHeads& queries, const HeadInput& k, const HeadInput& v,
                   const QueryScratch& scratch);

}  // namespace zg
