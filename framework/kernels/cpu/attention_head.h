// Attention forward, one head and one block of queries at a time, as in FlashAttention (Dao et al.,
// arXiv 2205.14135), but with all keys that the block sees at once.
#pragma once

#include "framework/kernels/cpu/attention_blocks.h"
#include "framework/kernels/cpu/attention_options.h"
#include "framework/kernels/cpu/attention_scratch.h"

namespace zg {

struct ForwardScratch {
  float* keys;  // packed, of all blocks; likewise values
  float* values;
  float* queries;
  float* scores;
  float* weights;  // rounded in 16 bits, else in the place of the scores
  float* packed_weights;
  float* sums;
  float* maxima;  // of queries; likewise weight_sums
  float* weight_sums;
  float* bits;

  ForwardScratch(const AttentionShape& shape, Carver& carver)
      : keys(carver.Take(shape.num_key_blocks() * shape.rows_size())),
        values(carver.Take(shape.num_key_blocks() * shape.terms_size())),
        queries(carver.Take(shape.columns_size())),
        scores(carver.Take(shape.scores_size())),
        weights(carver.TakeRounded(shape, scores)),
        packed_weights(carver.Take(shape.weights_size())),
        sums(carver.Take(shape.sums_size())),
        maxima(carver.Take(shape.block)),
        weight_sums(carver.Take(shape.block)),
        bits(carver.Take(DropoutBitsSize(shape))) {}
};

// Packs a head of keys and of values, for the heads of queries that use it.
void PackKeys(const AttentionShape& shape, const HeadInput& k, const HeadInput& v,
              const ForwardScratch& scratch);

// Must be called within a GemmScope. `log_sum_exp` has one number per query; null: not wanted.
void RunHead(const AttentionShape& shape, const HeadInput& q, const HeadOptions& options,
             const ForwardScratch& scratch, const HeadOutput& out, float* log_sum_exp);

}  // namespace zg
