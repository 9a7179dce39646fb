// Attention in f32 arithmetic, for operands of every type: tiles of queries and keys in shared
// memory, a block of 16 x 16 threads, each with kRows x kRows elements of a product of two tiles.
// No score reaches device memory (Dao et al., FlashAttention, arXiv 2205.14135). Queries' and keys'
// gradients are separate kernels, so that every sum has one order.
#pragma once

#include "framework/kernels/cuda/attention_options.cuh"
#include "framework/kernels/cuda/attention_rows.cuh"
#include "framework/kernels/cuda/kernel_util.h"
#include "framework/kernels/cuda/reduce.cuh"
#include "framework/kernels/cuda/rounding.cuh"
#include "framework/kernels/cuda/shared_memory.cuh"
#include "framework/kernels/math/vector_math.h"

namespace zg::cuda {

// Threads of a block in each direction; those of equal y are half a warp.
inline constexpr int kSide = 16;

// For kTile positions and kSize >= head_size channels, in a head of (batch, head).
template <int kTile, int kSize>
struct TileGeometry {
  static constexpr int kRows = kTile / kSide;
  static constexpr int kColumns = kSize / kSide;
  static constexpr int kStride = kSize + 1;       // row stride of channels, without bank conflicts
  static constexpr int kScoreStride = kTile + 1;  // row stride of scores
  static constexpr int kTileFloats = kTile * kStride;
  static constexpr int kScoreFloats = kTile * kScoreStride;
};

// Copies positions [begin, begin + kTile) into shared memory, with zeros after the last one and the
// last channel.
template <int kTile, int kSize, typename T>
__device__ inline void LoadTile(const HeadRows<const T>& rows, const AttentionShape& shape,
                                int begin, float* tile) {
  constexpr int kStride = TileGeometry<kTile, kSize>::kStride;
  const int thread = threadIdx.y * kSide + threadIdx.x;
  for (int i = thread; i < kTile * kSize; i += kSide * kSide) {
    const int row = i / kSize;
    const int channel = i % kSize;
    const bool is_inside = begin + row < rows.positions && channel < shape.head_size;
    tile[row * kStride + channel] =
        is_inside ? Widen(rows.begin[(begin + row) * rows.stride + channel]) : 0.0f;
  }
}

// products[i][j] = the product of row y + 16 i of a and row x + 16 j of b.
template <int kTile, int kSize>
__device__ inline void MultiplyRows(const float* a, const float* b,
                                    float (&products)[kTile / kSide][kTile / kSide]) {
  using Geometry = TileGeometry<kTile, kSize>;
  constexpr int kRows = Geometry::kRows;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kRows; ++j) products[i][j] = 0.0f;
  }
  const float* const a_rows = a + threadIdx.y * Geometry::kStride;
  const float* const b_rows = b + threadIdx.x * Geometry::kStride;
  for (int channel = 0; channel < kSize; ++channel) {
    float left[kRows];
    float right[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      left[i] = a_rows[i * kSide * Geometry::kStride + channel];
      right[i] = b_rows[i * kSide * Geometry::kStride + channel];
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kRows; ++j) products[i][j] = fmaf(left[i], right[j], products[i][j]);
    }
  }
}

// sums[i][j] += the sum over rows r of weights[y + 16 i][r] values[r][x + 16 j], or of the
// transposed weights.
template <int kTile, int kSize, bool kTransposed>
__device__ inline void AddWeightedRows(
    const float* weights, const float* values,
    float (&sums)[TileGeometry<kTile, kSize>::kRows][TileGeometry<kTile, kSize>::kColumns]) {
  using Geometry = TileGeometry<kTile, kSize>;
  constexpr int kStep = kTransposed ? Geometry::kScoreStride : 1;
  constexpr int kRowStep = kTransposed ? 1 : Geometry::kScoreStride;
  for (int row = 0; row < kTile; ++row) {
    float weight[Geometry::kRows];
#pragma unroll
    for (int i = 0; i < Geometry::kRows; ++i) {
      weight[i] = weights[(threadIdx.y + i * kSide) * kRowStep + row * kStep];
    }
#pragma unroll
    for (int j = 0; j < Geometry::kColumns; ++j) {
      const float value = values[row * Geometry::kStride + threadIdx.x + j * kSide];
#pragma unroll
      for (int i = 0; i < Geometry::kRows; ++i) sums[i][j] = fmaf(weight[i], value, sums[i][j]);
    }
  }
}

// Writes rows [begin, begin + kTile) of a gradient or an output.
template <int kTile, int kSize, typename T>
__device__ inline void StoreTile(
    const float (&values)[TileGeometry<kTile, kSize>::kRows][TileGeometry<kTile, kSize>::kColumns],
    const HeadRows<T>& rows, const AttentionShape& shape, int begin) {
  using Geometry = TileGeometry<kTile, kSize>;
#pragma unroll
  for (int i = 0; i < Geometry::kRows; ++i) {
    const int position = begin + threadIdx.y + i * kSide;
    if (position >= rows.positions) continue;
#pragma unroll
    for (int j = 0; j < Geometry::kColumns; ++j) {
      const int channel = threadIdx.x + j * kSide;
      if (channel >= shape.head_size) continue;
      rows.begin[position * rows.stride + channel] = Round<T>(values[i][j]);
    }
  }
}

// A block for each head (x) and tile of queries (y); tiles with the most work under causality come
// first.
template <int kTile, int kSize, typename T>
__global__ void AttentionTileKernel(AttentionArrays<T> arrays, AttentionShape shape) {
  using Geometry = TileGeometry<kTile, kSize>;
  constexpr int kRows = Geometry::kRows;
  constexpr int kColumns = Geometry::kColumns;
  float* const queries = reinterpret_cast<float*>(DynamicSharedMemory());
  float* const keys = queries + Geometry::kTileFloats;  // then the values
  float* const weights = keys + Geometry::kTileFloats;
  const Head at = HeadOfBlock(shape.heads);
  if (at.batch >= shape.batch) return;
  const HeadRows<const T> q = QueryRows(arrays.q, shape.q, shape, at);
  const HeadRows<const T> k = KeyRows(arrays.k, shape.k, shape, at);
  const HeadRows<const T> v = KeyRows(arrays.v, shape.v, shape, at);
  const HeadOptions<T> options = OptionsOf(arrays.options, shape, at);
  const int first = static_cast<int>(gridDim.y - 1 - blockIdx.y) * kTile;

  float maxima[kRows];
  float sums[kRows];
  float out[kRows][kColumns];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    maxima[i] = options.sink;
    sums[i] = options.sink == -INFINITY ? 0.0f : 1.0f;
#pragma unroll
    for (int j = 0; j < kColumns; ++j) out[i][j] = 0.0f;
  }
  LoadTile<kTile, kSize>(q, shape, first, queries);
  const int end = EndOfKeys<kTile>(shape, first);
  for (int begin = BeginOfKeys<kTile>(shape, first); begin < end; begin += kTile) {
    LoadTile<kTile, kSize>(k, shape, begin, keys);
    __syncthreads();
    float scores[kRows][kRows];
    MultiplyRows<kTile, kSize>(queries, keys, scores);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int row = threadIdx.y + i * kSide;
      float largest = -INFINITY;
#pragma unroll
      for (int j = 0; j < kRows; ++j) {
        const int key = begin + threadIdx.x + j * kSide;
        scores[i][j] = ScoreOf(options, shape, first + row, key, scores[i][j]);
        largest = largest > scores[i][j] ? largest : scores[i][j];
      }
      // Without options the first tile has a key for every query, so the maximum is finite from
      // then on. With options hidden scores are finite, and their contribution is later scaled to
      // 0.
      largest = WarpMax<kSide>(largest);
      const float maximum = maxima[i] > largest ? maxima[i] : largest;
      const float factor = Exp(maxima[i] - maximum);
      float sum = 0.0f;
#pragma unroll
      for (int j = 0; j < kRows; ++j) {
        const float weight = Exp(scores[i][j] - maximum);
        sum += weight;
        const int key = begin + threadIdx.x + j * kSide;
        weights[row * Geometry::kScoreStride + threadIdx.x + j * kSide] =
            weight * KeepOf(options, shape, first + row, key);
      }
      maxima[i] = maximum;
      sums[i] = sums[i] * factor + WarpSum<kSide>(sum);
#pragma unroll
      for (int j = 0; j < kColumns; ++j) out[i][j] *= factor;
    }
    __syncthreads();
    LoadTile<kTile, kSize>(v, shape, begin, keys);
    __syncthreads();
    AddWeightedRows<kTile, kSize, false>(weights, keys, out);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int position = first + threadIdx.y + i * kSide;
    const bool sees_none = maxima[i] <= kHiddenScore;
    const float factor = sees_none ? 0.0f : 1.0f / sums[i];
#pragma unroll
    for (int j = 0; j < kColumns; ++j) out[i][j] *= factor;
    if (threadIdx.x == 0 && position < shape.queries) {
      arrays.log_sum_exp[FirstRow(shape, at) + position] =
          sees_none ? kNoKeysLogSumExp : maxima[i] + Log(sums[i]);
    }
  }
  StoreTile<kTile, kSize>(out, QueryRows(arrays.out, shape.out, shape, at), shape, first);
}

// Turns products and the gradients of weights into products' gradients: with s = scale product +
// bias, w = e^(s - log_sum_exp), dproduct = w (dw - dot) scale slope; for dropped weights, w and dw are
// 0. Both belong to query first_query + y and key first_key + x; `weights` and `gradients` are rows
// of queries.
template <int kTile, typename T>
__device__ inline void ScoreGradients(const AttentionGradArrays<T>& arrays,
                                      const AttentionShape& shape, const Head& at, int first_query,
                                      int first_key, float (&scores)[kTile / kSide][kTile / kSide],
                                      float (&gradients)[kTile / kSide][kTile / kSide]) {
  const HeadOptions<T> options = OptionsOf(arrays.options, shape, at);
#pragma unroll
  for (int i = 0; i < kTile / kSide; ++i) {
    const int query = first_query + threadIdx.y + i * kSide;
    const bool is_inside = query < shape.queries;
    const int64_t row = FirstRow(shape, at) + query;
    const float log_sum_exp = is_inside ? arrays.log_sum_exp[row] : 0.0f;
    const float dot = is_inside ? arrays.dot[row] : 0.0f;
#pragma unroll
    for (int j = 0; j < kTile / kSide; ++j) {
      const int key = first_key + threadIdx.x + j * kSide;
      const float slope = SlopeOf(shape, scores[i][j]);
      const float score = ScoreOf(options, shape, query, key, scores[i][j]);
      const bool sees = is_inside && score > kHiddenScore;
      const float weight = sees ? Exp(score - log_sum_exp) : 0.0f;
      const float keep = KeepOf(options, shape, query, key);
      scores[i][j] = weight * keep;
      const float gradient = weight * (gradients[i][j] * keep - dot) * shape.scale;
      gradients[i][j] = sees ? gradient * slope : 0.0f;
    }
  }
}

template <int kTile>
__device__ inline void StoreScores(const float (&scores)[kTile / kSide][kTile / kSide],
                                   float* tile) {
#pragma unroll
  for (int i = 0; i < kTile / kSide; ++i) {
#pragma unroll
    for (int j = 0; j < kTile / kSide; ++j) {
      tile[(threadIdx.y + i * kSide) * (kTile + 1) + threadIdx.x + j * kSide] = scores[i][j];
    }
  }
}

// Computes dk and dv of a tile of keys (y) of a key head (x), over the queries that see them, head
// by head.
template <int kTile, int kSize, typename T>
__global__ void AttentionKeyGradTileKernel(AttentionGradArrays<T> arrays, AttentionShape shape) {
  using Geometry = TileGeometry<kTile, kSize>;
  constexpr int kRows = Geometry::kRows;
  float* const keys = reinterpret_cast<float*>(DynamicSharedMemory());
  float* const values = keys + Geometry::kTileFloats;
  float* const queries = values + Geometry::kTileFloats;
  float* const douts = queries + Geometry::kTileFloats;
  float* const weights = douts + Geometry::kTileFloats;  // then the scores' gradients
  const Head key_head = HeadOfBlock(shape.key_heads);
  if (key_head.batch >= shape.batch) return;
  const int first = static_cast<int>(blockIdx.y) * kTile;
  LoadTile<kTile, kSize>(RowsOf(arrays.k, shape.k, shape, key_head.batch, key_head.head), shape,
                         first, keys);
  LoadTile<kTile, kSize>(RowsOf(arrays.v, shape.v, shape, key_head.batch, key_head.head), shape,
                         first, values);
  float dk[kRows][Geometry::kColumns] = {};
  float dv[kRows][Geometry::kColumns] = {};
  const int end = EndOfQueries<kTile>(shape, first);
  for (int h = 0; h < shape.group; ++h) {
    const Head at = {key_head.batch, key_head.head * shape.group + h};
    const HeadRows<const T> q = QueryRows(arrays.q, shape.q, shape, at);
    const HeadRows<const T> dout = QueryRows(arrays.dout, shape.out, shape, at);
    for (int begin = BeginOfQueries(shape, first); begin < end; begin += kTile) {
      LoadTile<kTile, kSize>(q, shape, begin, queries);
      LoadTile<kTile, kSize>(dout, shape, begin, douts);
      __syncthreads();
      float scores[kRows][kRows];
      float gradients[kRows][kRows];
      MultiplyRows<kTile, kSize>(queries, keys, scores);
      MultiplyRows<kTile, kSize>(douts, values, gradients);
      ScoreGradients<kTile>(arrays, shape, at, begin, first, scores, gradients);
      StoreScores<kTile>(scores, weights);
      __syncthreads();
      AddWeightedRows<kTile, kSize, true>(weights, douts, dv);
      __syncthreads();
      StoreScores<kTile>(gradients, weights);
      __syncthreads();
      AddWeightedRows<kTile, kSize, true>(weights, queries, dk);
      __syncthreads();
    }
  }
  StoreTile<kTile, kSize>(dk, RowsOf(arrays.dk, shape.k, shape, key_head.batch, key_head.head),
                          shape, first);
  StoreTile<kTile, kSize>(dv, RowsOf(arrays.dv, shape.v, shape, key_head.batch, key_head.head),
                          shape, first);
}

// Computes dq of a tile of queries (y) of a head (x), over the keys that they see.
template <int kTile, int kSize, typename T>
__global__ void AttentionQueryGradTileKernel(AttentionGradArrays<T> arrays, AttentionShape shape) {
  using Geometry = TileGeometry<kTile, kSize>;
  constexpr int kRows = Geometry::kRows;
  float* const queries = reinterpret_cast<float*>(DynamicSharedMemory());
  float* const douts = queries + Geometry::kTileFloats;
  float* const keys = douts + Geometry::kTileFloats;
  float* const values = keys + Geometry::kTileFloats;
  float* const weights = values + Geometry::kTileFloats;
  const Head at = HeadOfBlock(shape.heads);
  if (at.batch >= shape.batch) return;
  const HeadRows<const T> k = KeyRows(arrays.k, shape.k, shape, at);
  const HeadRows<const T> v = KeyRows(arrays.v, shape.v, shape, at);
  const int first = static_cast<int>(gridDim.y - 1 - blockIdx.y) * kTile;
  LoadTile<kTile, kSize>(QueryRows(arrays.q, shape.q, shape, at), shape, first, queries);
  LoadTile<kTile, kSize>(QueryRows(arrays.dout, shape.out, shape, at), shape, first, douts);
  float dq[kRows][Geometry::kColumns] = {};
  const int end = EndOfKeys<kTile>(shape, first);
  for (int begin = BeginOfKeys<kTile>(shape, first); begin < end; begin += kTile) {
    LoadTile<kTile, kSize>(k, shape, begin, keys);
    LoadTile<kTile, kSize>(v, shape, begin, values);
    __syncthreads();
    float scores[kRows][kRows];
    float gradients[kRows][kRows];
    MultiplyRows<kTile, kSize>(queries, keys, scores);
    MultiplyRows<kTile, kSize>(douts, values, gradients);
    ScoreGradients<kTile>(arrays, shape, at, first, begin, scores, gradients);
    StoreScores<kTile>(gradients, weights);
    __syncthreads();
    AddWeightedRows<kTile, kSize, false>(weights, keys, dq);
    __syncthreads();
  }
  StoreTile<kTile, kSize>(dq, QueryRows(arrays.dq, shape.q, shape, at), shape, first);
}

}  // namespace zg::cuda
