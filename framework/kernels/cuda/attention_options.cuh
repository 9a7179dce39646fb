// The effect of attention's options on one score, and the gradient of a bias, for the kernels in
// f32 arithmetic (attention_tiles.cuh).
#pragma once

#include "framework/base/random.h"
#include "framework/kernels/cuda/attention_rows.cuh"
#include "framework/kernels/cuda/rounding.cuh"
#include "framework/kernels/math/elementary_math.h"
#include "framework/kernels/math/vector_math.h"

namespace zg::cuda {

// The options' operands for one head of queries.
template <typename T>
struct HeadOptions {
  const int64_t* mask;  // one number per key, or the number of keys
  const T* bias;        // (Tq, Tk)
  float sink;           // a score that sums begin with; -infinity: none
  uint64_t seed;        // of the random key
  uint64_t stream;
  int64_t first_element;  // of the weight of query 0 and key 0
};

template <typename T>
__device__ inline HeadOptions<T> OptionsOf(const OptionOperands<T>& operands,
                                           const AttentionShape& shape, const Head& at) {
  HeadOptions<T> options = {nullptr, nullptr, -INFINITY, 0, 0, 0};
  if (shape.is_plain) return options;
  if (operands.mask != nullptr) {
    options.mask = operands.mask + at.batch * (shape.mask_counts ? 1 : shape.keys);
  }
  if (operands.bias != nullptr) {
    options.bias =
        operands.bias + at.batch * shape.bias_batch_stride + at.head * shape.bias_head_stride;
  }
  if (operands.sinks != nullptr) options.sink = Widen(operands.sinks[at.head]);
  if (shape.drop_threshold > 0) {
    RandomKey key{operands.step->seed};
    key = FoldIn(key, static_cast<uint64_t>(operands.step->step));
    key = FoldIn(key, static_cast<uint64_t>(operands.step->micro_batch));
    key = FoldIn(key, shape.stream);
    options.seed = key.seed;
    options.stream = key.stream;
    PartedDim heads = shape.parted_heads;
    heads.part = operands.part;
    options.first_element =
        (at.batch * heads.Total() + heads.IndexOf(at.head)) * shape.queries * shape.keys;
  }
  return options;
}

template <typename T>
__device__ inline bool SeesWithOptions(const HeadOptions<T>& options, const AttentionShape& shape,
                                       int64_t query, int64_t key) {
  if (!Sees(shape, query, key)) return false;
  const int64_t distance = query + shape.offset - key;
  if (shape.window > 0 && (distance >= shape.window || -distance >= shape.window)) return false;
  if (options.mask == nullptr) return true;
  return shape.mask_counts ? key < *options.mask : options.mask[key] != 0;
}

__device__ inline float CappedScore(float score, float cap) {
  return cap == 0.0f ? score : cap * elementwise::Tanh(score / cap);
}

// The derivative of the capped score.
__device__ inline float SlopeOf(const AttentionShape& shape, float product) {
  if (shape.soft_cap == 0.0f) return 1.0f;
  const float share = CappedScore(product * shape.scale, shape.soft_cap) / shape.soft_cap;
  return 1.0f - share * share;
}

// The score from the product of a query and a key; at most kHiddenScore if the query does not see
// the key.
template <typename T>
__device__ inline float ScoreOf(const HeadOptions<T>& options, const AttentionShape& shape,
                                int64_t query, int64_t key, float product) {
  if (shape.is_plain) return Sees(shape, query, key) ? product * shape.scale : -INFINITY;
  if (query >= shape.queries || !SeesWithOptions(options, shape, query, key)) return kHiddenScore;
  float score = CappedScore(product * shape.scale, shape.soft_cap);
  if (options.bias != nullptr) score += Widen(options.bias[query * shape.keys + key]);
  return score < kHiddenScore ? kHiddenScore : score;
}

// 0 for a dropped weight, else the factor that it is multiplied by.
template <typename T>
__device__ inline float KeepOf(const HeadOptions<T>& options, const AttentionShape& shape,
                               int64_t query, int64_t key) {
  if (shape.drop_threshold == 0) return 1.0f;
  const uint64_t element = options.first_element + query * shape.keys + key;
  const RandomBlock bits = RandomBits({options.seed, options.stream}, element / 4);
  return (bits[element % 4] >> 8) >= shape.drop_threshold ? shape.keep_scale : 0.0f;
}

// dbias: a thread for each element, which sums the heads and sequences that share it, in order. It
// reads rows of all operands for each score: meant for biases that are parameters of a small model,
// not for speed.
template <typename T>
__global__ void AttentionBiasGradKernel(AttentionGradArrays<T> arrays, AttentionShape shape,
                                        T* dbias, int64_t bias_batch, int64_t bias_heads) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t matrix = int64_t{shape.queries} * shape.keys;
  if (index >= bias_batch * bias_heads * matrix) return;
  const int64_t query = index % matrix / shape.keys;
  const int64_t key = index % shape.keys;
  const int64_t own_batch = index / matrix / bias_heads;
  const int64_t own_head = index / matrix % bias_heads;
  float sum = 0.0f;
  for (int64_t b = own_batch; b < shape.batch; b += bias_batch) {
    for (int64_t h = own_head; h < shape.heads; h += bias_heads) {
      const Head at = {b, h};
      const HeadOptions<T> options = OptionsOf(arrays.options, shape, at);
      const T* const q = QueryRows(arrays.q, shape.q, shape, at).begin + query * shape.q.stride;
      const T* const dout =
          QueryRows(arrays.dout, shape.out, shape, at).begin + query * shape.out.stride;
      const T* const k = KeyRows(arrays.k, shape.k, shape, at).begin + key * shape.k.stride;
      const T* const v = KeyRows(arrays.v, shape.v, shape, at).begin + key * shape.v.stride;
      float product = 0.0f;
      float dweight = 0.0f;
      for (int64_t c = 0; c < shape.head_size; ++c) {
        product = fmaf(Widen(q[c]), Widen(k[c]), product);
        dweight = fmaf(Widen(dout[c]), Widen(v[c]), dweight);
      }
      const float score = ScoreOf(options, shape, query, key, product);
      const int64_t row = FirstRow(shape, at) + query;
      const float weight = score > kHiddenScore ? Exp(score - arrays.log_sum_exp[row]) : 0.0f;
      sum += weight * (dweight * KeepOf(options, shape, query, key) - arrays.dot[row]);
    }
  }
  dbias[index] = Round<T>(sum);
}

}  // namespace zg::cuda
