// The effect of attention's options on a block of scores (attention_blocks.h), in plain loops
// between the matrix products: masks, windows, an additive bias, dropout of the weights.
#pragma once

#include <cstdint>
#include <limits>

#include "framework/base/host_device.h"
#include "framework/base/random.h"
#include "framework/kernels/cpu/attention_blocks.h"
#include "framework/kernels/kernel.h"
#include "framework/kernels/math/elementary_math.h"

namespace zg {

// A score of -infinity hides its key; NaN stays.
ZG_INLINE float BiasedScore(float score, float bias) {
  const float biased = score + bias;
  return biased < kHiddenScore ? kHiddenScore : biased;
}

// The factor of a score's gradient is 1 - (capped / cap)^2.
ZG_INLINE float CappedScore(float score, float cap) { return cap * elementwise::Tanh(score / cap); }

// The sink of head `head`, a score that is part of its queries' sums; -infinity, which adds nothing, if
// there are none.
inline constexpr float kNoSink = -std::numeric_limits<float>::infinity();
float SinkOf(const AttentionShape& shape, const KernelArguments& arguments, int64_t head);

// The options' operands for one head.
struct HeadOptions {
  const int64_t* mask = nullptr;  // one number per key, or the number of keys
  const void* bias = nullptr;     // (Tq, Tk)
  float sink = kNoSink;
  RandomKey key;
  uint64_t first_element = 0;  // index of the weight of query 0 and key 0 in the whole micro-batch

  HeadOptions(const AttentionShape& shape, const KernelArguments& arguments, int64_t batch,
              int64_t head);
};

// Turns products with the queries from `begin` on into scores: scaled, capped, with the bias added, and
// hidden where a query does not see a key. With a cap, `slopes` (null: not wanted) are the factors that
// it puts on the scores' gradients.
void FindScores(const AttentionShape& shape, const HeadOptions& options, int64_t begin,
                float* products, float* slopes);

// Multiplies gradients of products, in the operands' dtype, by the slopes of a cap.
void ScaleBySlopes(const AttentionShape& shape, int64_t begin, const float* slopes,
                   void* dproducts);

// Queries that see no key get 0 from the sum of any values.
void CloseRowsWithoutKeys(const AttentionShape& shape, float* maxima, float* sums);

// Zeroes dropped weights, or gradients of weights, and scales the others by 1 / (1 - probability).
// `bits` is scratch for shape.keys numbers.
void DropScores(const AttentionShape& shape, const HeadOptions& options, int64_t begin, DType dtype,
                void* scores, uint32_t* bits);

// Adds the contribution of a block of scores to the gradient of the bias, (Tq, Tk) of this head,
// from the scores and the gradients of the weights.
void AddBiasGradient(const AttentionShape& shape, int64_t begin, const float* log_sum_exp,
                     const float* dot, const float* scores, const float* dweights, float* dbias);

}  // namespace zg
