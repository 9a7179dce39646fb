// Attention in 16 bits on tensor cores: four warps, each with 16 rows of a product of two tiles in
// its registers; scores become the left operand of the next product without leaving them
// (FlashAttention-2, Dao, arXiv 2307.08691). For heads whose rows can be read in 16 bytes. Scores,
// sums and softmax are in f32; weights and the scores' gradients are rounded for the products.
#pragma once

#include "framework/kernels/cuda/async_copy.cuh"
#include "framework/kernels/cuda/attention_rows.cuh"
#include "framework/kernels/cuda/reduce.cuh"
#include "framework/kernels/cuda/shared_memory.cuh"
#include "framework/kernels/cuda/tensor_core.cuh"

namespace zg::cuda {

inline constexpr int kAttentionThreads = 128;
inline constexpr int kRowsOfBlock = 64;  // 16 for each warp
inline constexpr float kLog2E = 1.44269504088896341f;
inline constexpr float kLn2 = 0.693147180559945309f;

// kSize >= head_size channels, and 16 bytes against bank conflicts.
template <int kSize>
inline constexpr int kHalfStride = kSize + 8;

__device__ inline int FirstRowOfWarp() { return static_cast<int>(threadIdx.x) / kWarp * 16; }
// Of a product's element c[r].
__device__ inline int RowOfElement(int r) {
  return FirstRowOfWarp() + static_cast<int>(threadIdx.x) % kWarp / 4 + r / 2 * 8;
}
__device__ inline int ColumnOfElement(int tile, int r) {
  return tile * 8 + static_cast<int>(threadIdx.x) % 4 * 2 + r % 2;
}

// Positions [begin, begin + kRows) into shared memory; zeros behind the last one and the last
// channel. Asynchronous copies, which the caller commits.
template <int kRows, int kSize, typename T>
__device__ inline void LoadHalfTile(const HeadRows<const T>& rows, const AttentionShape& shape,
                                    int64_t begin, T* tile) {
  constexpr int kPacks = kSize / 8;
#pragma unroll
  for (int i = threadIdx.x; i < kRows * kPacks; i += kAttentionThreads) {
    const int row = i / kPacks;
    const int channel = i % kPacks * 8;
    const bool is_inside = begin + row < shape.time && channel < shape.head_size;
    const int64_t offset = is_inside ? (begin + row) * rows.stride + channel : 0;
    CopyAsync(rows.begin + offset, is_inside, tile + row * kHalfStride<kSize> + channel);
  }
}

// The left operand: rows [row, row + 16), columns [column, column + 16) of a tile.
template <int kSize, typename T>
__device__ inline void LoadLeft(const T* tile, int row, int column, uint32_t (&a)[4]) {
  const int lane = threadIdx.x % kWarp;
  LoadMatrices(tile + (row + lane % 16) * kHalfStride<kSize> + column + lane / 16 * 8, a);
}

// Two neighbouring right operands, whose columns are rows [row, row + 16) of a tile.
template <int kSize, typename T>
__device__ inline void LoadRight(const T* tile, int row, int column, uint32_t (&b)[2][2]) {
  const int lane = threadIdx.x % kWarp;
  uint32_t matrices[4];
  LoadMatrices(
      tile + (row + lane % 8 + lane / 16 * 8) * kHalfStride<kSize> + column + lane / 8 % 2 * 8,
      matrices);
  b[0][0] = matrices[0];
  b[0][1] = matrices[1];
  b[1][0] = matrices[2];
  b[1][1] = matrices[3];
}

// Two neighbouring right operands, whose rows are rows [row, row + 16) of a tile.
template <int kSize, typename T>
__device__ inline void LoadRightTransposed(const T* tile, int row, int column,
                                           uint32_t (&b)[2][2]) {
  const int lane = threadIdx.x % kWarp;
  uint32_t matrices[4];
  LoadMatricesTransposed(tile + (row + lane % 16) * kHalfStride<kSize> + column + lane / 16 * 8,
                         matrices);
  b[0][0] = matrices[0];
  b[0][1] = matrices[1];
  b[1][0] = matrices[2];
  b[1][1] = matrices[3];
}

template <int kTiles>
__device__ inline void Clear(float (&products)[kTiles][4]) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
#pragma unroll
    for (int r = 0; r < 4; ++r) products[n][r] = 0.0f;
  }
}

// products = the warp's 16 rows of `left` times the rows of `right`.
template <int kTiles, int kSize, typename T>
__device__ inline void MultiplyByRows(const T* left, const T* right, float (&products)[kTiles][4]) {
  Clear(products);
#pragma unroll
  for (int k = 0; k < kSize; k += 16) {
    uint32_t a[4];
    LoadLeft<kSize>(left, FirstRowOfWarp(), k, a);
#pragma unroll
    for (int n = 0; n < kTiles; n += 2) {
      uint32_t b[2][2];
      LoadRight<kSize>(right, n * 8, k, b);
      MultiplyAdd(T(), a, b[0], products[n]);
      MultiplyAdd(T(), a, b[1], products[n + 1]);
    }
  }
}

// sums += weights, rounded to T, times the rows of `values`.
template <int kTiles, int kSize, typename T>
__device__ inline void AddWeightedRows(const float (&weights)[kTiles][4], const T* values,
                                       float (&sums)[kSize / 8][4]) {
#pragma unroll
  for (int k = 0; k < kTiles; k += 2) {
    const uint32_t a[4] = {PackPair(T(), weights[k][0], weights[k][1]),
                           PackPair(T(), weights[k][2], weights[k][3]),
                           PackPair(T(), weights[k + 1][0], weights[k + 1][1]),
                           PackPair(T(), weights[k + 1][2], weights[k + 1][3])};
#pragma unroll
    for (int n = 0; n < kSize / 8; n += 2) {
      uint32_t b[2][2];
      LoadRightTransposed<kSize>(values, k * 8, n * 8, b);
      MultiplyAdd(T(), a, b[0], sums[n]);
      MultiplyAdd(T(), a, b[1], sums[n + 1]);
    }
  }
}

// Writes the block's rows, of which `begin` is the first position.
template <int kSize, typename T>
__device__ inline void StoreRows(const float (&values)[kSize / 8][4], const HeadRows<T>& rows,
                                 const AttentionShape& shape, int64_t begin) {
#pragma unroll
  for (int r = 0; r < 4; r += 2) {
    const int64_t position = begin + RowOfElement(r);
    if (position >= shape.time) continue;
#pragma unroll
    for (int n = 0; n < kSize / 8; ++n) {
      const int channel = ColumnOfElement(n, r);
      if (channel >= shape.head_size) continue;
      *reinterpret_cast<uint32_t*>(rows.begin + position * rows.stride + channel) =
          PackPair(T(), values[n][r], values[n][r + 1]);
    }
  }
}

// Over the four lanes that share a row.
__device__ inline float RowSum(float value) {
  value += __shfl_xor_sync(kAllLanes, value, 1);
  return value + __shfl_xor_sync(kAllLanes, value, 2);
}
__device__ inline float RowMax(float value) {
  value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, 1));
  return fmaxf(value, __shfl_xor_sync(kAllLanes, value, 2));
}

// True if every query from first_query on sees all of these keys.
__device__ inline bool AllSee(const AttentionShape& shape, int64_t first_query, int64_t key_end) {
  return key_end <= shape.time && (!shape.causal || key_end - 1 <= first_query);
}

// A block for each head (x) and 64 queries (y).
template <int kSize, typename T>
__global__ void __launch_bounds__(kAttentionThreads)
    AttentionTensorCoreKernel(AttentionArrays<T> arrays, AttentionShape shape) {
  constexpr int kKeys = 64;
  constexpr int kTiles = kKeys / 8;
  T* const queries = reinterpret_cast<T*>(DynamicSharedMemory());
  T* const keys = queries + kRowsOfBlock * kHalfStride<kSize>;
  T* const values = keys + kKeys * kHalfStride<kSize>;
  const HeadRows<const T> k = RowsOf(arrays.qkv, shape, 3, 1);
  const HeadRows<const T> v = RowsOf(arrays.qkv, shape, 3, 2);
  const int64_t first = static_cast<int64_t>(gridDim.y - 1 - blockIdx.y) * kRowsOfBlock;
  const float scale = shape.scale * kLog2E;  // softmax in powers of 2
  LoadHalfTile<kRowsOfBlock, kSize>(RowsOf(arrays.qkv, shape, 3, 0), shape, first, queries);

  float maxima[2] = {-INFINITY, -INFINITY};  // of the rows of elements 0 and 2
  float sums[2] = {0.0f, 0.0f};
  float out[kSize / 8][4];
  Clear(out);
  // Values arrive during the first product, the next keys during the second.
  const int64_t end = EndOfKeys<kRowsOfBlock>(shape, first);
  LoadHalfTile<kKeys, kSize>(k, shape, 0, keys);
  CommitCopies();
  for (int64_t begin = 0; begin < end; begin += kKeys) {
    LoadHalfTile<kKeys, kSize>(v, shape, begin, values);
    CommitCopies();
    WaitForCopies<1>();
    __syncthreads();
    float scores[kTiles][4];
    MultiplyByRows<kTiles, kSize>(queries, keys, scores);
    WaitForCopies<0>();
    __syncthreads();
    if (begin + kKeys < end) LoadHalfTile<kKeys, kSize>(k, shape, begin + kKeys, keys);
    CommitCopies();
    const bool all_see = AllSee(shape, first, begin + kKeys);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t query = first + RowOfElement(half * 2);
      float largest = maxima[half];
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int r = half * 2; r < half * 2 + 2; ++r) {
          const bool sees = all_see || Sees(shape, query, begin + ColumnOfElement(n, r));
          scores[n][r] = sees ? scores[n][r] * scale : -INFINITY;
          largest = fmaxf(largest, scores[n][r]);
        }
      }
      // Every query sees the first key, so the maximum is finite.
      largest = RowMax(largest);
      const float factor = exp2f(maxima[half] - largest);
      maxima[half] = largest;
      float sum = 0.0f;
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int r = half * 2; r < half * 2 + 2; ++r) {
          scores[n][r] = exp2f(scores[n][r] - largest);
          sum += scores[n][r];
        }
      }
      sums[half] = sums[half] * factor + RowSum(sum);
#pragma unroll
      for (int n = 0; n < kSize / 8; ++n) {
        out[n][half * 2] *= factor;
        out[n][half * 2 + 1] *= factor;
      }
    }
    AddWeightedRows<kTiles, kSize>(scores, values, out);
    __syncthreads();
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t position = first + RowOfElement(half * 2);
    const float factor = 1.0f / sums[half];
#pragma unroll
    for (int n = 0; n < kSize / 8; ++n) {
      out[n][half * 2] *= factor;
      out[n][half * 2 + 1] *= factor;
    }
    if (threadIdx.x % 4 == 0 && position < shape.time) {
      arrays.log_sum_exp[blockIdx.x * shape.time + position] =
          maxima[half] * kLn2 + logf(sums[half]);
    }
  }
  StoreRows<kSize>(out, RowsOf(arrays.out, shape, 1, 0), shape, first);
}

// With w = e^(scale s - log_sum_exp): ds = w (dw - dot) scale. Turns s into w and dw into ds.
struct QueryStatistics {
  float log_sum_exp_2;  // in powers of 2
  float dot;
};

__device__ inline void ScoreGradient(const AttentionShape& shape, bool sees,
                                     const QueryStatistics& query, float* score, float* gradient) {
  const float weight = sees ? exp2f(*score * (shape.scale * kLog2E) - query.log_sum_exp_2) : 0.0f;
  *score = weight;
  *gradient = sees ? weight * (*gradient - query.dot) * shape.scale : 0.0f;
}

template <typename T>
__device__ inline QueryStatistics StatisticsOf(const AttentionGradArrays<T>& arrays,
                                               const AttentionShape& shape, int64_t query) {
  if (query >= shape.time) return {0.0f, 0.0f};
  const int64_t at = blockIdx.x * shape.time + query;
  return {arrays.log_sum_exp[at] * kLog2E, arrays.dot[at]};
}

// Queries in a tile of the next kernel: fewer where the sums take more registers.
template <int kSize>
inline constexpr int kQueriesOfKeyGrad = kSize <= 64 ? 64 : 32;

// Pairs of tiles in shared memory: with two, one arrives while the other is worked on.
template <int kSize>
inline constexpr int kStages = kSize <= 64 ? 2 : 1;

// Calls work(begin, stage) for every kStep positions of [begin, end) while their pair of tiles,
// which load(begin, stage) copies, lies complete in shared memory.
template <int kSize, int kStep, typename Load, typename Work>
__device__ inline void ForEachTile(int64_t begin, int64_t end, const Load& load, const Work& work) {
  load(begin, 0);
  CommitCopies();
  for (int stage = 0; begin < end; begin += kStep) {
    const bool has_next = begin + kStep < end;
    if (kStages<kSize> == 2) {
      if (has_next) load(begin + kStep, 1 - stage);
      CommitCopies();
      WaitForCopies<1>();
    } else {
      WaitForCopies<0>();
    }
    __syncthreads();
    work(begin, stage);
    __syncthreads();
    if (kStages<kSize> == 2) {
      stage = 1 - stage;
    } else if (has_next) {
      load(begin + kStep, 0);
      CommitCopies();
    }
  }
}

// dk and dv of 64 keys (y) of a head (x), over the queries that see them. Rows are keys here.
template <int kSize, typename T>
__global__ void __launch_bounds__(kAttentionThreads)
    AttentionKeyGradTensorCoreKernel(AttentionGradArrays<T> arrays, AttentionShape shape) {
  constexpr int kQueries = kQueriesOfKeyGrad<kSize>;
  constexpr int kTiles = kQueries / 8;
  __shared__ QueryStatistics statistics[kStages<kSize>][kQueries];
  T* const keys = reinterpret_cast<T*>(DynamicSharedMemory());
  T* const values = keys + kRowsOfBlock * kHalfStride<kSize>;
  T* const queries = values + kRowsOfBlock * kHalfStride<kSize>;  // of every stage
  T* const douts = queries + kStages<kSize> * kQueries * kHalfStride<kSize>;
  const HeadRows<const T> q = RowsOf(arrays.qkv, shape, 3, 0);
  const HeadRows<const T> dout = RowsOf(arrays.dout, shape, 1, 0);
  const int64_t first = static_cast<int64_t>(blockIdx.y) * kRowsOfBlock;
  const int64_t first_query = shape.causal ? first : 0;
  LoadHalfTile<kRowsOfBlock, kSize>(RowsOf(arrays.qkv, shape, 3, 1), shape, first, keys);
  LoadHalfTile<kRowsOfBlock, kSize>(RowsOf(arrays.qkv, shape, 3, 2), shape, first, values);
  float dk[kSize / 8][4];
  float dv[kSize / 8][4];
  Clear(dk);
  Clear(dv);
  const auto load = [&](int64_t begin, int stage) {
    const int offset = stage * kQueries * kHalfStride<kSize>;
    LoadHalfTile<kQueries, kSize>(q, shape, begin, queries + offset);
    LoadHalfTile<kQueries, kSize>(dout, shape, begin, douts + offset);
    if (threadIdx.x < kQueries) {
      statistics[stage][threadIdx.x] = StatisticsOf(arrays, shape, begin + threadIdx.x);
    }
  };
  const auto work = [&](int64_t begin, int stage) {
    const int offset = stage * kQueries * kHalfStride<kSize>;
    float weights[kTiles][4];
    float gradients[kTiles][4];
    MultiplyByRows<kTiles, kSize>(keys, queries + offset, weights);
    MultiplyByRows<kTiles, kSize>(values, douts + offset, gradients);
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int column = ColumnOfElement(n, r);
        const int64_t query = begin + column;
        const bool sees = query < shape.time && Sees(shape, query, first + RowOfElement(r));
        ScoreGradient(shape, sees, statistics[stage][column], &weights[n][r], &gradients[n][r]);
      }
    }
    AddWeightedRows<kTiles, kSize>(weights, douts + offset, dv);
    AddWeightedRows<kTiles, kSize>(gradients, queries + offset, dk);
  };
  ForEachTile<kSize, kQueries>(first_query, shape.time, load, work);
  StoreRows<kSize>(dk, RowsOf(arrays.dqkv, shape, 3, 1), shape, first);
  StoreRows<kSize>(dv, RowsOf(arrays.dqkv, shape, 3, 2), shape, first);
}

// dq of 64 queries (y) of a head (x), over the keys that they see.
template <int kSize, typename T>
__global__ void __launch_bounds__(kAttentionThreads)
    AttentionQueryGradTensorCoreKernel(AttentionGradArrays<T> arrays, AttentionShape shape) {
  constexpr int kKeys = 64;
  constexpr int kTiles = kKeys / 8;
  T* const queries = reinterpret_cast<T*>(DynamicSharedMemory());
  T* const douts = queries + kRowsOfBlock * kHalfStride<kSize>;
  T* const keys = douts + kRowsOfBlock * kHalfStride<kSize>;  // of every stage
  T* const values = keys + kStages<kSize> * kKeys * kHalfStride<kSize>;
  const HeadRows<const T> k = RowsOf(arrays.qkv, shape, 3, 1);
  const HeadRows<const T> v = RowsOf(arrays.qkv, shape, 3, 2);
  const int64_t first = static_cast<int64_t>(gridDim.y - 1 - blockIdx.y) * kRowsOfBlock;
  LoadHalfTile<kRowsOfBlock, kSize>(RowsOf(arrays.qkv, shape, 3, 0), shape, first, queries);
  LoadHalfTile<kRowsOfBlock, kSize>(RowsOf(arrays.dout, shape, 1, 0), shape, first, douts);
  const QueryStatistics statistics[2] = {StatisticsOf(arrays, shape, first + RowOfElement(0)),
                                         StatisticsOf(arrays, shape, first + RowOfElement(2))};
  float dq[kSize / 8][4];
  Clear(dq);
  const auto load = [&](int64_t begin, int stage) {
    const int offset = stage * kKeys * kHalfStride<kSize>;
    LoadHalfTile<kKeys, kSize>(k, shape, begin, keys + offset);
    LoadHalfTile<kKeys, kSize>(v, shape, begin, values + offset);
  };
  const auto work = [&](int64_t begin, int stage) {
    const int offset = stage * kKeys * kHalfStride<kSize>;
    float weights[kTiles][4];
    float gradients[kTiles][4];
    MultiplyByRows<kTiles, kSize>(queries, keys + offset, weights);
    MultiplyByRows<kTiles, kSize>(douts, values + offset, gradients);
    const bool all_see = AllSee(shape, first, begin + kKeys);
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const bool sees =
            all_see || Sees(shape, first + RowOfElement(r), begin + ColumnOfElement(n, r));
        ScoreGradient(shape, sees, statistics[r / 2], &weights[n][r], &gradients[n][r]);
      }
    }
    AddWeightedRows<kTiles, kSize>(gradients, keys + offset, dq);
  };
  ForEachTile<kSize, kKeys>(0, EndOfKeys<kRowsOfBlock>(shape, first), load, work);
  StoreRows<kSize>(dq, RowsOf(arrays.dqkv, shape, 3, 0), shape, first);
}

}  // namespace zg::cuda
