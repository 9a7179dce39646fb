// The gradient of attention on tensor cores (attention_tensor_core.cuh).
#pragma once

#include "framework/kernels/cuda/attention_tensor_core.cuh"

namespace zg::cuda {

// The numbers of a query that the gradients of its scores depend on; zeros after the last query,
// whose rows are zeros.
struct QueryStatistics {
  float log_sum_exp_2;  // in powers of 2
  float scaled_dot;
};

template <typename T>
__device__ inline QueryStatistics StatisticsOf(const AttentionGradArrays<T>& arrays,
                                               const AttentionShape& shape, int64_t first_row,
                                               int query) {
  if (query >= shape.queries) return {0.0f, 0.0f};
  const int64_t row = first_row + query;
  return {arrays.log_sum_exp[row] * kLog2E, arrays.dot[row] * shape.scale};
}

// w = e^(scale s - log_sum_exp)
__device__ inline float WeightOf(float score, float scale, const QueryStatistics& query) {
  return Exp2(fmaf(score, scale * kLog2E, -query.log_sum_exp_2));
}
// ds = w (dw - dot) scale
__device__ inline float ScoreGradient(float weight, float gradient, float scale,
                                      const QueryStatistics& query) {
  return weight * fmaf(gradient, scale, -query.scaled_dot);
}

// Two neighbouring queries: the numbers that a lane needs for a tile of scores, in one load.
struct alignas(16) TwoQueries {
  QueryStatistics queries[2];
};

// HideKeys() where rows are keys and columns are queries. Queries after the last one need no mask:
// their rows are zeros.
template <int kTiles>
__device__ inline void HideFromQueries(const AttentionShape& shape, int first_key, int first_query,
                                       float (&scores)[kTiles][4]) {
  if (!shape.causal || first_key + kRowsOfBlock - 1 <= first_query + shape.offset) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int first_that_sees = first_key + RowOfElement(half * 2) - shape.offset;
    const int hidden = first_that_sees - first_query - ColumnOfElement(0, 0);
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (n * 8 + i < hidden) scores[n][half * 2 + i] = -INFINITY;
      }
    }
  }
}

// Queries in a tile of the next kernel: fewer where the sums take more registers.
template <int kSize>
inline constexpr int kQueriesOfKeyGrad = kSize <= 64 ? 64 : 32;

// Pairs of tiles in shared memory: two where there is room.
template <int kSize>
inline constexpr int kGradStages = kSize <= 64 ? 2 : 1;

// Computes dk and dv of 64 keys (y) of a key head (x), over the queries that see them, head by
// head. Rows are keys here.
template <typename Tiles, typename T>
__global__ void __launch_bounds__(kAttentionThreads)
    AttentionKeyGradTensorCoreKernel(AttentionGradArrays<T> arrays, AttentionShape shape) {
  constexpr int kSize = Tiles::kSize;
  constexpr int kQueries = kQueriesOfKeyGrad<kSize>;
  constexpr int kTiles = kQueries / 8;
  __shared__ TwoQueries statistics[kGradStages<kSize>][kQueries / 2];
  T* const keys = reinterpret_cast<T*>(DynamicSharedMemory());
  T* const values = keys + kRowsOfBlock * Tiles::kStride;
  T* const queries = values + kRowsOfBlock * Tiles::kStride;  // of all stages
  T* const douts = queries + kGradStages<kSize> * kQueries * Tiles::kStride;
  const Head key_head = HeadOfBlock(shape.key_heads);
  if (key_head.batch >= shape.batch) return;
  const HeadRows<const T> k = RowsOf(arrays.k, shape.k, shape, key_head.batch, key_head.head);
  const HeadRows<const T> v = RowsOf(arrays.v, shape.v, shape, key_head.batch, key_head.head);
  const int first = static_cast<int>(blockIdx.y) * kRowsOfBlock;
  LoadTile<kRowsOfBlock, Tiles>(k, shape, first, keys);
  LoadTile<kRowsOfBlock, Tiles>(v, shape, first, values);
  float dk[kSize / 8][4];
  float dv[kSize / 8][4];
  Clear(dk);
  Clear(dv);
  for (int i = 0; i < shape.group; ++i) {
    const Head at = {key_head.batch, key_head.head * shape.group + i};
    const HeadRows<const T> q = QueryRows(arrays.q, shape.q, shape, at);
    const HeadRows<const T> dout = QueryRows(arrays.dout, shape.out, shape, at);
    const int64_t first_row = FirstRow(shape, at);
    const auto load = [&](int begin, int stage) {
      LoadPair<kQueries, Tiles>(q, dout, shape, begin, stage, queries, douts);
      if (threadIdx.x < kQueries) {
        statistics[stage][threadIdx.x / 2].queries[threadIdx.x % 2] =
            StatisticsOf(arrays, shape, first_row, begin + static_cast<int>(threadIdx.x));
      }
    };
    const auto work = [&](int begin, int stage) {
      const int offset = stage * kQueries * Tiles::kStride;
      float weights[kTiles][4];
      float gradients[kTiles][4];
      Tiles::MultiplyByRows(keys, queries + offset, weights);
      Tiles::MultiplyByRows(values, douts + offset, gradients);
      Tiles::template Wait<1>(weights);
      HideFromQueries(shape, first, begin, weights);
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
        const TwoQueries both = statistics[stage][ColumnOfElement(n, 0) / 2];
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          weights[n][r] = WeightOf(weights[n][r], shape.scale, both.queries[r % 2]);
        }
      }
      Tiles::template Wait<0>(gradients);
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
        const TwoQueries both = statistics[stage][ColumnOfElement(n, 0) / 2];
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          gradients[n][r] =
              ScoreGradient(weights[n][r], gradients[n][r], shape.scale, both.queries[r % 2]);
        }
      }
      Tiles::AddWeightedRows(weights, douts + offset, dv);
      Tiles::AddWeightedRows(gradients, queries + offset, dk);
      Tiles::template Wait<0>(dv);
      Tiles::template Wait<0>(dk);
    };
    ForEachTile<Tiles, kGradStages<kSize>, kQueries>(BeginOfQueries(shape, first), shape.queries,
                                                     load, work);
  }
  StoreRows<kSize>(dk, RowsOf(arrays.dk, shape.k, shape, key_head.batch, key_head.head), shape,
                   first);
  StoreRows<kSize>(dv, RowsOf(arrays.dv, shape.v, shape, key_head.batch, key_head.head), shape,
                   first);
}

// Computes dq of 64 queries (y) of a head (x), over the keys that they see.
template <typename Tiles, typename T>
__global__ void __launch_bounds__(kAttentionThreads)
    AttentionQueryGradTensorCoreKernel(AttentionGradArrays<T> arrays, AttentionShape shape) {
  constexpr int kSize = Tiles::kSize;
  constexpr int kKeys = 64;
  constexpr int kTiles = kKeys / 8;
  T* const queries = reinterpret_cast<T*>(DynamicSharedMemory());
  T* const douts = queries + kRowsOfBlock * Tiles::kStride;
  T* const keys = douts + kRowsOfBlock * Tiles::kStride;  // of all stages
  T* const values = keys + kGradStages<kSize> * kKeys * Tiles::kStride;
  const Head at = HeadOfBlock(shape.heads);
  if (at.batch >= shape.batch) return;
  const HeadRows<const T> k = KeyRows(arrays.k, shape.k, shape, at);
  const HeadRows<const T> v = KeyRows(arrays.v, shape.v, shape, at);
  const int first = static_cast<int>(gridDim.y - 1 - blockIdx.y) * kRowsOfBlock;
  LoadTile<kRowsOfBlock, Tiles>(QueryRows(arrays.q, shape.q, shape, at), shape, first, queries);
  LoadTile<kRowsOfBlock, Tiles>(QueryRows(arrays.dout, shape.out, shape, at), shape, first, douts);
  const int64_t first_row = FirstRow(shape, at);
  const QueryStatistics statistics[2] = {
      StatisticsOf(arrays, shape, first_row, first + RowOfElement(0)),
      StatisticsOf(arrays, shape, first_row, first + RowOfElement(2))};
  float dq[kSize / 8][4];
  Clear(dq);
  const auto load = [&](int begin, int stage) {
    LoadPair<kKeys, Tiles>(k, v, shape, begin, stage, keys, values);
  };
  const auto work = [&](int begin, int stage) {
    const int offset = stage * kKeys * Tiles::kStride;
    float weights[kTiles][4];
    float gradients[kTiles][4];
    Tiles::MultiplyByRows(queries, keys + offset, weights);
    Tiles::MultiplyByRows(douts, values + offset, gradients);
    Tiles::template Wait<1>(weights);
    HideKeys(shape, first, begin, weights);
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        weights[n][r] = WeightOf(weights[n][r], shape.scale, statistics[r / 2]);
      }
    }
    Tiles::template Wait<0>(gradients);
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        gradients[n][r] =
            ScoreGradient(weights[n][r], gradients[n][r], shape.scale, statistics[r / 2]);
      }
    }
    Tiles::AddWeightedRows(gradients, keys + offset, dq);
    Tiles::template Wait<0>(dq);
  };
  ForEachTile<Tiles, kGradStages<kSize>, kKeys>(0, EndOfKeys<kRowsOfBlock>(shape, first), load,
                                                work);
  StoreRows<kSize>(dq, QueryRows(arrays.dq, shape.q, shape, at), shape, first);
}

}  // namespace zg::cuda
