// Attention in f32 arithmetic, for operands of every type: tiles of queries and keys in shared
// memory, a block of 16 x 16 threads, each with kRows x kRows elements of a product of two tiles.
// No score reaches device memory (Dao et al., FlashAttention, arXiv 2205.14135). Queries' and keys'
// gradients are separate kernels, so that every sum has one order.
#pragma once

#include "framework/kernels/cuda/attention_rows.cuh"
#include "framework/kernels/cuda/kernel_util.h"
#include "framework/kernels/cuda/reduce.cuh"
#include "framework/kernels/cuda/rounding.cuh"
#include "framework/kernels/cuda/shared_memory.cuh"
#include "framework/kernels/math/vector_math.h"

namespace zg::cuda {

// Threads of a block in each direction; those of equal y are half a warp.
inline constexpr int kSide = 16;

// kTile positions and kSize >= head_size channels, in a head of (batch, head).
template <int kTile, int kSize>
struct TileGeometry {
  static constexpr int kRows = kTile / kSide;
  static constexpr int kColumns = kSize / kSide;
  static constexpr int kStride = kSize + 1;       // of rows of channels: no bank conflicts
  static constexpr int kScoreStride = kTile + 1;  // of rows of scores
  static constexpr int kTileFloats = kTile * kStride;
  static constexpr int kScoreFloats = kTile * kScoreStride;
};

// Positions [begin, begin + kTile) into shared memory; zeros behind the last one and the last
// channel.
template <int kTile, int kSize, typename T>
__device__ inline void LoadTile(const HeadRows<const T>& rows, const AttentionShape& shape,
                                int64_t begin, float* tile) {
  constexpr int kStride = TileGeometry<kTile, kSize>::kStride;
  const int thread = threadIdx.y * kSide + threadIdx.x;
  for (int i = thread; i < kTile * kSize; i += kSide * kSide) {
    const int row = i / kSize;
    const int channel = i % kSize;
    const bool is_inside = begin + row < shape.time && channel < shape.head_size;
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
    const HeadRows<T>& rows, const AttentionShape& shape, int64_t begin) {
  using Geometry = TileGeometry<kTile, kSize>;
#pragma unroll
  for (int i = 0; i < Geometry::kRows; ++i) {
    const int64_t position = begin + threadIdx.y + i * kSide;
    if (position >= shape.time) continue;
#pragma unroll
    for (int j = 0; j < Geometry::kColumns; ++j) {
      const int channel = threadIdx.x + j * kSide;
      if (channel >= shape.head_size) continue;
      rows.begin[position * rows.stride + channel] = Round<T>(values[i][j]);
    }
  }
}

// A block for each head (x) and tile of queries (y); what causality leaves long comes first.
template <int kTile, int kSize, typename T>
__global__ void AttentionTileKernel(AttentionArrays<T> arrays, AttentionShape shape) {
  using Geometry = TileGeometry<kTile, kSize>;
  constexpr int kRows = Geometry::kRows;
  constexpr int kColumns = Geometry::kColumns;
  float* const queries = reinterpret_cast<float*>(DynamicSharedMemory());
  float* const keys = queries + Geometry::kTileFloats;  // then the values
  float* const weights = keys + Geometry::kTileFloats;
  const HeadRows<const T> q = RowsOf(arrays.qkv, shape, 3, 0);
  const HeadRows<const T> k = RowsOf(arrays.qkv, shape, 3, 1);
  const HeadRows<const T> v = RowsOf(arrays.qkv, shape, 3, 2);
  const int64_t first = static_cast<int64_t>(gridDim.y - 1 - blockIdx.y) * kTile;

  float maxima[kRows];
  float sums[kRows];
  float out[kRows][kColumns];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    maxima[i] = -INFINITY;
    sums[i] = 0.0f;
#pragma unroll
    for (int j = 0; j < kColumns; ++j) out[i][j] = 0.0f;
  }
  LoadTile<kTile, kSize>(q, shape, first, queries);
  const int64_t end = EndOfKeys<kTile>(shape, first);
  for (int64_t begin = 0; begin < end; begin += kTile) {
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
        const bool sees = Sees(shape, first + row, begin + threadIdx.x + j * kSide);
        scores[i][j] = sees ? scores[i][j] * shape.scale : -INFINITY;
        largest = largest > scores[i][j] ? largest : scores[i][j];
      }
      // The first tile has a key for every query, so the maximum is finite from then on.
      largest = WarpMax<kSide>(largest);
      const float maximum = maxima[i] > largest ? maxima[i] : largest;
      const float factor = Exp(maxima[i] - maximum);
      float sum = 0.0f;
#pragma unroll
      for (int j = 0; j < kRows; ++j) {
        const float weight = Exp(scores[i][j] - maximum);
        sum += weight;
        weights[row * Geometry::kScoreStride + threadIdx.x + j * kSide] = weight;
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
    const int64_t position = first + threadIdx.y + i * kSide;
    const float factor = 1.0f / sums[i];
#pragma unroll
    for (int j = 0; j < kColumns; ++j) out[i][j] *= factor;
    if (threadIdx.x == 0 && position < shape.time) {
      arrays.log_sum_exp[blockIdx.x * shape.time + position] = maxima[i] + Log(sums[i]);
    }
  }
  StoreTile<kTile, kSize>(out, RowsOf(arrays.out, shape, 1, 0), shape, first);
}

// From scores and their gradients' first half: with w = e^(scale s - log_sum_exp),
// ds = w (dw - dot) scale. Both are of query first_query + y and key first_key + x, in `weights`
// and `gradients` of rows of queries.
template <int kTile, typename T>
__device__ inline void ScoreGradients(const AttentionGradArrays<T>& arrays,
                                      const AttentionShape& shape, int64_t first_query,
                                      int64_t first_key,
                                      float (&scores)[kTile / kSide][kTile / kSide],
                                      float (&gradients)[kTile / kSide][kTile / kSide]) {
#pragma unroll
  for (int i = 0; i < kTile / kSide; ++i) {
    const int64_t query = first_query + threadIdx.y + i * kSide;
    const bool is_inside = query < shape.time;
    const int64_t at = blockIdx.x * shape.time + query;
    const float log_sum_exp = is_inside ? arrays.log_sum_exp[at] : 0.0f;
    const float dot = is_inside ? arrays.dot[at] : 0.0f;
#pragma unroll
    for (int j = 0; j < kTile / kSide; ++j) {
      const bool sees = is_inside && Sees(shape, query, first_key + threadIdx.x + j * kSide);
      const float weight = sees ? Exp(scores[i][j] * shape.scale - log_sum_exp) : 0.0f;
      scores[i][j] = weight;
      gradients[i][j] = sees ? weight * (gradients[i][j] - dot) * shape.scale : 0.0f;
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

// dot[b, h, t] = dout . out: a warp for each.
template <typename T>
__global__ void AttentionDotKernel(AttentionGradArrays<T> arrays, AttentionShape shape) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (index >= shape.batch * shape.heads * shape.time) return;
  const int lane = threadIdx.x % kWarp;
  const int64_t position = index % shape.time;
  const int64_t head = index / shape.time % shape.heads;
  const int64_t batch = index / shape.time / shape.heads;
  const int64_t offset = (batch * shape.time + position) * shape.channels + head * shape.head_size;
  float sum = 0.0f;
  for (int64_t channel = lane; channel < shape.head_size; channel += kWarp) {
    sum += Widen(arrays.dout[offset + channel]) * Widen(arrays.out[offset + channel]);
  }
  sum = WarpSum(sum);
  if (lane == 0) arrays.dot[index] = sum;
}

// dk and dv of a tile of keys (y) of a head (x), over the queries that see them.
template <int kTile, int kSize, typename T>
__global__ void AttentionKeyGradTileKernel(AttentionGradArrays<T> arrays, AttentionShape shape) {
  using Geometry = TileGeometry<kTile, kSize>;
  constexpr int kRows = Geometry::kRows;
  float* const keys = reinterpret_cast<float*>(DynamicSharedMemory());
  float* const values = keys + Geometry::kTileFloats;
  float* const queries = values + Geometry::kTileFloats;
  float* const douts = queries + Geometry::kTileFloats;
  float* const weights = douts + Geometry::kTileFloats;  // then the scores' gradients
  const HeadRows<const T> q = RowsOf(arrays.qkv, shape, 3, 0);
  const HeadRows<const T> dout = RowsOf(arrays.dout, shape, 1, 0);
  const int64_t first = static_cast<int64_t>(blockIdx.y) * kTile;
  LoadTile<kTile, kSize>(RowsOf(arrays.qkv, shape, 3, 1), shape, first, keys);
  LoadTile<kTile, kSize>(RowsOf(arrays.qkv, shape, 3, 2), shape, first, values);
  float dk[kRows][Geometry::kColumns] = {};
  float dv[kRows][Geometry::kColumns] = {};
  for (int64_t begin = shape.causal ? first : 0; begin < shape.time; begin += kTile) {
    LoadTile<kTile, kSize>(q, shape, begin, queries);
    LoadTile<kTile, kSize>(dout, shape, begin, douts);
    __syncthreads();
    float scores[kRows][kRows];
    float gradients[kRows][kRows];
    MultiplyRows<kTile, kSize>(queries, keys, scores);
    MultiplyRows<kTile, kSize>(douts, values, gradients);
    ScoreGradients<kTile>(arrays, shape, begin, first, scores, gradients);
    StoreScores<kTile>(scores, weights);
    __syncthreads();
    AddWeightedRows<kTile, kSize, true>(weights, douts, dv);
    __syncthreads();
    StoreScores<kTile>(gradients, weights);
    __syncthreads();
    AddWeightedRows<kTile, kSize, true>(weights, queries, dk);
    __syncthreads();
  }
  StoreTile<kTile, kSize>(dk, RowsOf(arrays.dqkv, shape, 3, 1), shape, first);
  StoreTile<kTile, kSize>(dv, RowsOf(arrays.dqkv, shape, 3, 2), shape, first);
}

// dq of a tile of queries (y) of a head (x), over the keys that they see.
template <int kTile, int kSize, typename T>
__global__ void AttentionQueryGradTileKernel(AttentionGradArrays<T> arrays, AttentionShape shape) {
  using Geometry = TileGeometry<kTile, kSize>;
  constexpr int kRows = Geometry::kRows;
  float* const queries = reinterpret_cast<float*>(DynamicSharedMemory());
  float* const douts = queries + Geometry::kTileFloats;
  float* const keys = douts + Geometry::kTileFloats;
  float* const values = keys + Geometry::kTileFloats;
  float* const weights = values + Geometry::kTileFloats;
  const HeadRows<const T> k = RowsOf(arrays.qkv, shape, 3, 1);
  const HeadRows<const T> v = RowsOf(arrays.qkv, shape, 3, 2);
  const int64_t first = static_cast<int64_t>(gridDim.y - 1 - blockIdx.y) * kTile;
  LoadTile<kTile, kSize>(RowsOf(arrays.qkv, shape, 3, 0), shape, first, queries);
  LoadTile<kTile, kSize>(RowsOf(arrays.dout, shape, 1, 0), shape, first, douts);
  float dq[kRows][Geometry::kColumns] = {};
  const int64_t end = EndOfKeys<kTile>(shape, first);
  for (int64_t begin = 0; begin < end; begin += kTile) {
    LoadTile<kTile, kSize>(k, shape, begin, keys);
    LoadTile<kTile, kSize>(v, shape, begin, values);
    __syncthreads();
    float scores[kRows][kRows];
    float gradients[kRows][kRows];
    MultiplyRows<kTile, kSize>(queries, keys, scores);
    MultiplyRows<kTile, kSize>(douts, values, gradients);
    ScoreGradients<kTile>(arrays, shape, first, begin, scores, gradients);
    StoreScores<kTile>(gradients, weights);
    __syncthreads();
    AddWeightedRows<kTile, kSize, false>(weights, keys, dq);
    __syncthreads();
  }
  StoreTile<kTile, kSize>(dq, RowsOf(arrays.dqkv, shape, 3, 0), shape, first);
}

}  // namespace zg::cuda
