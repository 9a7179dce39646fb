// Sums over the rows of a matrix, of terms from a functor. There are two steps: blocks sum chunks
// of rows, then every column's chunks are added in order. Both depend only on the shape.
//
//   struct Terms {
//     static constexpr int kSums = 1;
//     template <int kCount>
//     __device__ void Add(int64_t row, int64_t column, Floats<kCount> (&sums)[kSums]) const;
//   };
#pragma once

#include <algorithm>

#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/cuda/reduce.cuh"

namespace zg::cuda {

inline constexpr int kColumnSumRows = 8;  // per thread

inline int64_t ColumnSumChunkRows(int64_t rows) {
  return std::max<int64_t>(64, CeilDivide(rows, 128));
}
inline int64_t ColumnSumChunks(int64_t rows) { return CeilDivide(rows, ColumnSumChunkRows(rows)); }

inline int64_t ColumnSumWorkspace(const MatrixShape& shape, int num_sums) {
  return num_sums * ColumnSumChunks(shape.rows) * shape.columns *
         static_cast<int64_t>(sizeof(float));
}

// partial[sum][chunk][column].
template <int kPack, typename Terms>
__global__ void ColumnSumChunkKernel(Terms terms, MatrixShape shape, int64_t chunk_rows,
                                     float* partial) {
  __shared__ Floats<kPack> lines[kColumnSumRows][kWarp];
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x) * kPack;
  const int64_t begin = blockIdx.y * chunk_rows;
  const int64_t end = begin + chunk_rows < shape.rows ? begin + chunk_rows : shape.rows;
  Floats<kPack> sums[Terms::kSums];
#pragma unroll
  for (int s = 0; s < Terms::kSums; ++s) {
#pragma unroll
    for (int i = 0; i < kPack; ++i) sums[s][i] = 0.0f;
  }
  if (column < shape.columns) {
    for (int64_t row = begin + threadIdx.y; row < end; row += kColumnSumRows) {
      terms.template Add<kPack>(row, column, sums);
    }
  }
#pragma unroll
  for (int s = 0; s < Terms::kSums; ++s) {
    lines[threadIdx.y][threadIdx.x] = sums[s];
    __syncthreads();
    if (threadIdx.y == 0 && column < shape.columns) {
      Floats<kPack> sum = lines[0][threadIdx.x];
      for (int line = 1; line < kColumnSumRows; ++line) {
#pragma unroll
        for (int i = 0; i < kPack; ++i) sum[i] += lines[line][threadIdx.x][i];
      }
      const int64_t chunk = static_cast<int64_t>(s) * gridDim.y + blockIdx.y;
      StoreFloats(sum, partial + chunk * shape.columns + column);
    }
    __syncthreads();
  }
}

template <typename T, int kSums>
struct ColumnSumOutputs {
  T* sums[kSums];
};

// A column's chunks are shared by the threads of a column of the block, each of which takes every
// kFinishRows-th; their sums are then added in a tree.
inline constexpr int kFinishRows = 32;

template <typename T, int kSums>
__global__ void __launch_bounds__(kFinishRows* kWarp)
    ColumnSumFinishKernel(const float* partial, int64_t num_chunks, int64_t columns,
                          ColumnSumOutputs<T, kSums> outputs) {
  __shared__ float lines[kFinishRows][kWarp + 1];  // a warp writes a line and reads a column
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kWarp;
  const int64_t own = first + threadIdx.x;
  const float* const chunks = partial + blockIdx.y * num_chunks * columns;
  float sum = 0.0f;
  if (own < columns) {
    for (int64_t chunk = threadIdx.y; chunk < num_chunks; chunk += kFinishRows) {
      sum += chunks[chunk * columns + own];
    }
  }
  lines[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  sum = WarpSum(lines[threadIdx.x][threadIdx.y]);
  const int64_t column = first + threadIdx.y;
  if (column >= columns || threadIdx.x != 0) return;
  T* out = outputs.sums[0];
#pragma unroll
  for (unsigned s = 1; s < kSums; ++s) {  // a computed index would need a stack frame
    if (blockIdx.y == s) out = outputs.sums[s];
  }
  out[column] = Round<T>(sum);
}

// Reads partial[sum][chunk][column].
template <typename T, int kSums>
Status FinishColumnSums(const float* partial, int64_t num_chunks, int64_t columns,
                        const ColumnSumOutputs<T, kSums>& outputs, void* stream) {
  static_assert(kFinishRows == kWarp, "a warp adds up what the threads of a column have");
  LaunchShape launch;
  launch.grid = dim3(static_cast<unsigned>(CeilDivide(columns, kWarp)), kSums);
  launch.block = dim3(kWarp, kFinishRows);
  return Launch(ColumnSumFinishKernel<T, kSums>, launch, stream, partial, num_chunks, columns,
                outputs);
}

// The elements of a matrix as terms.
template <typename T>
struct ElementTerms {
  static constexpr int kSums = 1;
  const T* x;
  int64_t columns;

  template <int kCount>
  __device__ void Add(int64_t row, int64_t column, Floats<kCount> (&sums)[kSums]) const {
    const Floats<kCount> terms = LoadFloats<kCount>(x + row * columns + column);
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums[0][i] += terms[i];
  }
};

// `is_aligned`: the terms' operands can be read in packs of kPack from every column that is a
// multiple of it. `workspace`: ColumnSumWorkspace() bytes.
template <int kPack, typename Terms, typename T>
Status SumColumns(const Terms& terms, const MatrixShape& shape, bool is_aligned, void* workspace,
                  const ColumnSumOutputs<T, Terms::kSums>& outputs, void* stream) {
  float* const partial = static_cast<float*>(workspace);
  const int64_t chunk_rows = ColumnSumChunkRows(shape.rows);
  const int64_t num_chunks = ColumnSumChunks(shape.rows);
  const int pack = is_aligned ? kPack : 1;
  LaunchShape launch;
  launch.grid = dim3(static_cast<unsigned>(CeilDivide(shape.columns, kWarp * pack)),
                     static_cast<unsigned>(num_chunks));
  launch.block = dim3(kWarp, kColumnSumRows);
  ZG_RETURN_IF_ERROR(
      Launch(is_aligned ? ColumnSumChunkKernel<kPack, Terms> : ColumnSumChunkKernel<1, Terms>,
             launch, stream, terms, shape, chunk_rows, partial));
  return FinishColumnSums(partial, num_chunks, shape.columns, outputs, stream);
}

}  // namespace zg::cuda
