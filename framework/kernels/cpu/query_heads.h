// Attention of one query, the step that decodes a token, in f32. Bits are those of attention_head.h,
// but keys and values are read in place, once for all heads of queries that use them: memory
// bandwidth decides here.
#pragma once

#include "framework/kernels/cpu/attention_blocks.h"
#include "framework/kernels/cpu/attention_scratch.h"

namespace zg {

// Whether RunQueryHeads can compute it; rows of other sizes cannot be read in place.
inline bool IsOneQuery(const AttentionShape& shape) {
  return shape.queries == 1 && shape.is_plain() && shape.dtype == DType::kF32 &&
         shape.head_size % kPanelUnit == 0;
}

// Matrices have a row for each head of queries in the group.
struct QueryScratch {
  float* queries;  // packed
  float* panel;    // of keys
  float* weights;
  float* packed_weights;
  float* sums;  // of weights

  QueryScratch(const AttentionShape& shape, Carver& carver)
      : queries(carver.Take(RoundUp(shape.group(), kTileRows) * shape.head_size)),
        panel(carver.Take(kMaxPanelWidth * shape.head_size)),
        weights(carver.Take(shape.group() * shape.keys)),
        packed_weights(carver.Take(RoundUp(shape.group(), kTileRows) * shape.keys)),
        sums(carver.Take(shape.group())) {}
};

// `q` and `out` are those of the group's first head; the other heads lie behind it.
void RunQueryHeads(const AttentionShape& shape, const HeadInput& q, const HeadInput& k,
                   const HeadInput& v, const QueryScratch& scratch, const HeadOutput& out);

}  // namespace zg
