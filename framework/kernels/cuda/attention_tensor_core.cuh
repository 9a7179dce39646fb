// Attention in 16 bits on tensor cores: four warps, each with 16 rows of a product of two tiles in
// its registers; scores become the left operand of the next product without leaving them
// (FlashAttention-2, Dao, arXiv 2307.08691). For heads whose rows can be read in 16 bytes. Scores,
// sums and softmax are in f32; weights and the scores' gradients are rounded for the products.
#pragma once

#include "framework/kernels/cuda/async_copy.cuh"
#include "framework/kernels/cuda/attention_rows.cuh"
#include "framework/kernels/cuda/exp2.cuh"
#include "framework/kernels/cuda/reduce.cuh"
#include "framework/kernels/cuda/rounding.cuh"
#include "framework/kernels/cuda/shared_memory.cuh"
#include "framework/kernels/cuda/tensor_core.cuh"

namespace zg::cuda {

inline constexpr int kAttentionThreads = 128;
inline constexpr int kRowsOfBlock = 64;  // 16 for each warp

__device__ inline int FirstRowOfWarp() { return static_cast<int>(threadIdx.x) / kWarp * 16; }
// The row of a product's element c[r].
__device__ inline int RowOfElement(int r) {
  return FirstRowOfWarp() + static_cast<int>(threadIdx.x) % kWarp / 4 + r / 2 * 8;
}
__device__ inline int ColumnOfElement(int tile, int r) {
  return tile * 8 + static_cast<int>(threadIdx.x) % 4 * 2 + r % 2;
}

// Copies positions [begin, begin + kRows) into shared memory, with zeros after the last one and the
// last channel. The copies are asynchronous, and the caller commits them. A thread copies the same
// channels of equally spaced rows, so that only the first address has to be computed.
template <int kRows, typename Tiles, typename T>
__device__ inline void LoadTile(const HeadRows<const T>& rows, const AttentionShape& shape,
                                int begin, T* tile) {
  constexpr int kPacks = Tiles::kSize / 8;
  constexpr int kRowStep = kAttentionThreads / kPacks;
  static_assert(kRowStep % 8 == 0, "a thread's packs have the same place in their rows");
  const int row = static_cast<int>(threadIdx.x) / kPacks;
  const int pack = static_cast<int>(threadIdx.x) % kPacks;
  const int rows_inside = pack * 8 < shape.head_size ? rows.positions - begin - row : 0;
  const T* source = rows.begin + (begin + row) * rows.stride + pack * 8;
  T* const target = tile + Tiles::Place(row, pack);
#pragma unroll
  for (int step = 0; step < kRows; step += kRowStep) {
    CopyAsync(source, step < rows_inside, target + step * Tiles::kStride);
    source += kRowStep * rows.stride;
  }
}

// Likewise the pair of tiles of a stage: the same positions of two operands.
template <int kRows, typename Tiles, typename T>
__device__ inline void LoadPair(const HeadRows<const T>& first, const HeadRows<const T>& second,
                                const AttentionShape& shape, int begin, int stage, T* first_tiles,
                                T* second_tiles) {
  const int offset = stage * kRows * Tiles::kStride;
  LoadTile<kRows, Tiles>(first, shape, begin, first_tiles + offset);
  LoadTile<kRows, Tiles>(second, shape, begin, second_tiles + offset);
}

template <int kTiles>
__device__ inline void Clear(float (&products)[kTiles][4]) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
#pragma unroll
    for (int r = 0; r < 4; ++r) products[n][r] = 0.0f;
  }
}

// Sums of 16 columns, rounded, as the left operand of a product.
template <typename T>
__device__ inline void PackWeights(const float (&first)[4], const float (&second)[4],
                                   uint32_t (&a)[4]) {
  a[0] = PackPair(T(), first[0], first[1]);
  a[1] = PackPair(T(), first[2], first[3]);
  a[2] = PackPair(T(), second[0], second[1]);
  a[3] = PackPair(T(), second[2], second[3]);
}

// Tiles in shared memory with room for heads of kSize channels, and their products by the instructions
// of warps (tensor_core.cuh). WarpgroupTiles (attention_warpgroup.cu) has the same functions. There,
// products are asynchronous: a call starts a group of them, and its results may be used after Wait().
template <int kChannels, typename T>
struct WarpTiles {
  using Type = T;
  static constexpr int kSize = kChannels;
  static constexpr int kStride = kSize + 8;  // 16 bytes more against bank conflicts

  __device__ static int Place(int row, int pack) { return row * kStride + pack * 8; }

  // The left operand: rows [row, row + 16), columns [column, column + 16) of a tile.
  __device__ static void LoadLeft(const T* tile, int row, int column, uint32_t (&a)[4]) {
    const int lane = threadIdx.x % kWarp;
    LoadMatrices(tile + (row + lane % 16) * kStride + column + lane / 16 * 8, a);
  }

  // Two neighbouring right operands, whose columns are rows [row, row + 16) of a tile.
  __device__ static void LoadRight(const T* tile, int row, int column, uint32_t (&b)[2][2]) {
    const int lane = threadIdx.x % kWarp;
    uint32_t matrices[4];
    LoadMatrices(tile + (row + lane % 8 + lane / 16 * 8) * kStride + column + lane / 8 % 2 * 8,
                 matrices);
    b[0][0] = matrices[0];
    b[0][1] = matrices[1];
    b[1][0] = matrices[2];
    b[1][1] = matrices[3];
  }

  // Two neighbouring right operands, whose rows are rows [row, row + 16) of a tile.
  __device__ static void LoadRightTransposed(const T* tile, int row, int column,
                                             uint32_t (&b)[2][2]) {
    const int lane = threadIdx.x % kWarp;
    uint32_t matrices[4];
    LoadMatricesTransposed(tile + (row + lane % 16) * kStride + column + lane / 16 * 8, matrices);
    b[0][0] = matrices[0];
    b[0][1] = matrices[1];
    b[1][0] = matrices[2];
    b[1][1] = matrices[3];
  }

  // products = the warp's 16 rows of `left` times the rows of `right`.
  template <int kTiles>
  __device__ static void MultiplyByRows(const T* left, const T* right,
                                        float (&products)[kTiles][4]) {
    Clear(products);
#pragma unroll
    for (int k = 0; k < kSize; k += 16) {
      uint32_t a[4];
      LoadLeft(left, FirstRowOfWarp(), k, a);
#pragma unroll
      for (int n = 0; n < kTiles; n += 2) {
        uint32_t b[2][2];
        LoadRight(right, n * 8, k, b);
        MultiplyAdd(T(), a, b[0], products[n]);
        MultiplyAdd(T(), a, b[1], products[n + 1]);
      }
    }
  }

  // sums += weights, rounded to T, times the rows of `values`.
  template <int kTiles>
  __device__ static void AddWeightedRows(const float (&weights)[kTiles][4], const T* values,
                                         float (&sums)[kSize / 8][4]) {
#pragma unroll
    for (int k = 0; k < kTiles; k += 2) {
      uint32_t a[4];
      PackWeights<T>(weights[k], weights[k + 1], a);
#pragma unroll
      for (int n = 0; n < kSize / 8; n += 2) {
        uint32_t b[2][2];
        LoadRightTransposed(values, k * 8, n * 8, b);
        MultiplyAdd(T(), a, b[0], sums[n]);
        MultiplyAdd(T(), a, b[1], sums[n + 1]);
      }
    }
  }

  // Waits until at most the last kPending calls are under way.
  template <int kPending, int kTiles>
  __device__ static void Wait(float (&)[kTiles][4]) {}

  // Products see copies that this thread has waited for, once the block has synchronised.
  __device__ static void ShowCopies() {}
};

// Writes the block's rows; `begin` is the first position.
template <int kSize, typename T>
__device__ inline void StoreRows(const float (&values)[kSize / 8][4], const HeadRows<T>& rows,
                                 const AttentionShape& shape, int begin) {
#pragma unroll
  for (int r = 0; r < 4; r += 2) {
    const int position = begin + RowOfElement(r);
    if (position >= rows.positions) continue;
#pragma unroll
    for (int n = 0; n < kSize / 8; ++n) {
      const int channel = ColumnOfElement(n, r);
      if (channel >= shape.head_size) continue;
      *reinterpret_cast<uint32_t*>(rows.begin + position * rows.stride + channel) =
          PackPair(T(), values[n][r], values[n][r + 1]);
    }
  }
}

// Sums over the four lanes that share a row.
__device__ inline float RowSum(float value) {
  value += __shfl_xor_sync(kAllLanes, value, 1);
  return value + __shfl_xor_sync(kAllLanes, value, 2);
}
__device__ inline float RowMax(float value) {
  value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, 1));
  return fmaxf(value, __shfl_xor_sync(kAllLanes, value, 2));
}

// Hides the keys of a tile that its queries (rows) do not see: scores become -infinity. No mask is
// needed where every query sees every key, as in all tiles but the last ones.
template <int kTiles>
__device__ inline void HideKeys(const AttentionShape& shape, int first_query, int first_key,
                                float (&scores)[kTiles][4]) {
  const int last = first_key + kTiles * 8 - 1;
  if (last < shape.keys && (!shape.causal || last <= first_query + shape.offset)) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int after_query = first_query + RowOfElement(half * 2) + shape.offset + 1;
    const int end = shape.causal && after_query < shape.keys ? after_query : shape.keys;
    const int seen = end - first_key - ColumnOfElement(0, 0);
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (n * 8 + i >= seen) scores[n][half * 2 + i] = -INFINITY;
      }
    }
  }
}

// Calls work(begin, stage) for every kStep positions of [begin, end) when their pair of tiles,
// which load(begin, stage) copies, is complete in shared memory. With two stages, one pair arrives
// while the other is being processed.
template <typename Tiles, int kStages, int kStep, typename Load, typename Work>
__device__ inline void ForEachTile(int begin, int end, const Load& load, const Work& work) {
  load(begin, 0);
  CommitCopies();
  for (int stage = 0; begin < end; begin += kStep) {
    const bool has_next = begin + kStep < end;
    if (kStages == 2) {
      if (has_next) load(begin + kStep, 1 - stage);
      CommitCopies();
      WaitForCopies<1>();
    } else {
      WaitForCopies<0>();
    }
    Tiles::ShowCopies();
    __syncthreads();
    work(begin, stage);
    __syncthreads();
    if (kStages == 2) {
      stage = 1 - stage;
    } else if (has_next) {
      load(begin + kStep, 0);
      CommitCopies();
    }
  }
}

inline constexpr int kForwardStages = 2;

// A block for each head (x) and 64 queries (y).
template <typename Tiles, typename T>
__global__ void __launch_bounds__(kAttentionThreads)
    AttentionTensorCoreKernel(AttentionArrays<T> arrays, AttentionShape shape) {
  constexpr int kSize = Tiles::kSize;
  constexpr int kKeys = 64;
  constexpr int kTiles = kKeys / 8;
  T* const queries = reinterpret_cast<T*>(DynamicSharedMemory());
  T* const keys = queries + kRowsOfBlock * Tiles::kStride;  // of all stages
  T* const values = keys + kForwardStages * kKeys * Tiles::kStride;
  const Head at = HeadOfBlock(shape.heads);
  if (at.batch >= shape.batch) return;
  const HeadRows<const T> k = KeyRows(arrays.k, shape.k, shape, at);
  const HeadRows<const T> v = KeyRows(arrays.v, shape.v, shape, at);
  const int first = static_cast<int>(gridDim.y - 1 - blockIdx.y) * kRowsOfBlock;
  const float scale = shape.scale * kLog2E;  // softmax in powers of 2
  LoadTile<kRowsOfBlock, Tiles>(QueryRows(arrays.q, shape.q, shape, at), shape, first, queries);

  // For the rows of elements 0 and 2: the largest products, and a lane's share of the sums.
  float maxima[2] = {-INFINITY, -INFINITY};
  float sums[2] = {0.0f, 0.0f};
  float out[kSize / 8][4];
  Clear(out);
  const auto load = [&](int begin, int stage) {
    LoadPair<kKeys, Tiles>(k, v, shape, begin, stage, keys, values);
  };
  const auto work = [&](int begin, int stage) {
    const int offset = stage * kKeys * Tiles::kStride;
    float scores[kTiles][4];
    Tiles::MultiplyByRows(queries, keys + offset, scores);
    Tiles::template Wait<0>(scores);
    HideKeys(shape, first, begin, scores);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest = maxima[half];
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
        largest = fmaxf(largest, fmaxf(scores[n][half * 2], scores[n][half * 2 + 1]));
      }
      // Every query sees the first key, so the maximum is finite.
      largest = RowMax(largest);
      const float shift = -largest * scale;
      const float factor = Exp2(fmaf(maxima[half], scale, shift));
      maxima[half] = largest;
      sums[half] *= factor;
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int r = half * 2; r < half * 2 + 2; ++r) {
          scores[n][r] = Exp2(fmaf(scores[n][r], scale, shift));
          sums[half] += scores[n][r];
        }
      }
#pragma unroll
      for (int n = 0; n < kSize / 8; ++n) {
        out[n][half * 2] *= factor;
        out[n][half * 2 + 1] *= factor;
      }
    }
    // Weights of keys that a query does not see are 0. Where such a key's value is infinite, the query's
    // row becomes NaN; its own query sees it, so that the result is not finite in any case.
    Tiles::AddWeightedRows(scores, values + offset, out);
    Tiles::template Wait<0>(out);
  };
  ForEachTile<Tiles, kForwardStages, kKeys>(0, EndOfKeys<kRowsOfBlock>(shape, first), load, work);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int position = first + RowOfElement(half * 2);
    const float sum = RowSum(sums[half]);
    const float factor = 1.0f / sum;
#pragma unroll
    for (int n = 0; n < kSize / 8; ++n) {
      out[n][half * 2] *= factor;
      out[n][half * 2 + 1] *= factor;
    }
    if (threadIdx.x % 4 == 0 && position < shape.queries) {
      arrays.log_sum_exp[FirstRow(shape, at) + position] = maxima[half] * shape.scale + logf(sum);
    }
  }
  StoreRows<kSize>(out, QueryRows(arrays.out, shape.out, shape, at), shape, first);
}

}  // namespace zg::cuda
