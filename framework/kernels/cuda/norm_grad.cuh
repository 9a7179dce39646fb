// The gradients of layer norm and rms norm. With n = (x - mean) rstd, where rms norm subtracts no
// mean, and d = dy gamma:
//   dx = (d - mean of d - n mean of (d n)) rstd + addend, without the mean of d in rms norm
//   dgamma = sum over rows of dy n; dbeta of layer norm = sum over rows of dy
//   sums = sum over rows of dx, if requested
// The inputs are read once if a row fits the threads of a block; otherwise twice, and dx is read a
// third time for its sums. `dx` may be `dy` or `x`. Sums are in an order that depends only on the
// shape.
#pragma once

#include <algorithm>

#include "framework/kernels/cuda/column_sum.cuh"
#include "framework/kernels/cuda/reduce.cuh"
#include "framework/kernels/cuda/warp_rows.cuh"
#include "framework/ops/addend.h"

namespace zg::cuda {

template <typename T>
struct NormGradArrays {
  const T* dy;
  const T* x;
  const T* gamma;
  const float* mean;  // null for rms norm
  const float* rstd;
  const T* addend;  // null: none
  T* dx;
};

// A row, or a thread's part of it.
template <bool kIsCentered, typename T>
struct NormGradRow {
  float mean;
  float rstd;

  __device__ NormGradRow(const NormGradArrays<T>& arrays, int64_t row)
      : mean(kIsCentered ? arrays.mean[row] : 0.0f), rstd(arrays.rstd[row]) {}

  __device__ float Normalized(float x) const { return kIsCentered ? (x - mean) * rstd : x * rstd; }

  // Adds d and d n.
  template <int kPack>
  __device__ void AddTerms(const Floats<kPack>& dy, const Floats<kPack>& x,
                           const Floats<kPack>& gamma, float* sum_d, float* sum_dn) const {
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const float d = dy[i] * gamma[i];
      if (kIsCentered) *sum_d += d;
      *sum_dn = fmaf(d, Normalized(x[i]), *sum_dn);
    }
  }

  // From the means over the row.
  template <int kPack>
  __device__ Floats<kPack> Gradient(const Floats<kPack>& dy, const Floats<kPack>& x,
                                    const Floats<kPack>& gamma, float mean_d, float mean_dn) const {
    Floats<kPack> dx;
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const float n = Normalized(x[i]);
      const float taken = kIsCentered ? fmaf(n, mean_dn, mean_d) : n * mean_dn;
      dx[i] = (dy[i] * gamma[i] - taken) * rstd;
    }
    return dx;
  }
};

template <int kPack, typename T>
__device__ inline void AddTo(const T* addend, Floats<kPack>* values) {
  const Floats<kPack> terms = LoadFloats<kPack>(addend);
#pragma unroll
  for (int i = 0; i < kPack; ++i) (*values)[i] += terms[i];
}

// ---- One reading: a block has a chunk of rows, and each of its threads the same columns of all.

inline constexpr int kNormGradRows = 4;             // that a block reads at once
inline constexpr int64_t kMaxNormGradBlocks = 512;  // their sums are written and read once more
inline int64_t NormGradChunkRows(int64_t rows) {
  return std::max<int64_t>(4 * kNormGradRows, CeilDivide(rows, kMaxNormGradBlocks));
}

// Threads for a row, in whole warps. With more, there are not enough registers.
inline constexpr int64_t kMaxNormGradThreads = 512;
inline int64_t NormGradThreads(int64_t columns, int pack) {
  return CeilDivide(columns, kWarp * pack) * kWarp;
}

// partial[sum][chunk][column], with the sums dgamma, dbeta (kIsCentered) and that of dx (kSumsDx).
template <int kPack, bool kIsCentered, bool kSumsDx, typename T>
__global__ void __launch_bounds__(kMaxNormGradThreads)
    NormGradKernel(NormGradArrays<T> arrays, MatrixShape shape, int64_t chunk_rows,
                   float* partial) {
  constexpr int kRowSums = kIsCentered ? 2 : 1;
  constexpr int kSums = kRowSums + (kSumsDx ? 1 : 0);
  constexpr int kMaxWarps = kMaxNormGradThreads / kWarp;
  // Double-buffered, so that a block need not wait until all threads have read the sums of the
  // previous rows.
  __shared__ float of_warps[2][kNormGradRows * kRowSums][kMaxWarps];
  const int num_warps = static_cast<int>(blockDim.x) / kWarp;
  const int64_t column = static_cast<int64_t>(threadIdx.x) * kPack;
  const bool has_columns = column < shape.columns;
  const int64_t begin = blockIdx.x * chunk_rows;
  const int64_t end = begin + chunk_rows < shape.rows ? begin + chunk_rows : shape.rows;
  const float size = static_cast<float>(shape.columns);
  Floats<kPack> gamma = {};
  if (has_columns) gamma = LoadFloats<kPack>(arrays.gamma + column);
  Floats<kPack> sums[kSums] = {};
  int turn = 0;
  for (int64_t first = begin; first < end; first += kNormGradRows, turn ^= 1) {
    Pack<T, kPack> dy[kNormGradRows];
    Pack<T, kPack> x[kNormGradRows];
#pragma unroll
    for (int r = 0; r < kNormGradRows; ++r) {
      if (first + r >= end || !has_columns) continue;
      const int64_t at = (first + r) * shape.columns + column;
      dy[r] = *reinterpret_cast<const Pack<T, kPack>*>(arrays.dy + at);
      x[r] = *reinterpret_cast<const Pack<T, kPack>*>(arrays.x + at);
    }
#pragma unroll
    for (int r = 0; r < kNormGradRows; ++r) {
      if (first + r >= end) continue;
      float sum_d = 0.0f;
      float sum_dn = 0.0f;
      if (has_columns) {
        const NormGradRow<kIsCentered, T> row(arrays, first + r);
        row.AddTerms(WidenPack(dy[r]), WidenPack(x[r]), gamma, &sum_d, &sum_dn);
      }
      sum_dn = WarpSum(sum_dn);
      if (kIsCentered) sum_d = WarpSum(sum_d);
      if (threadIdx.x % kWarp == 0) {
        of_warps[turn][r * kRowSums][threadIdx.x / kWarp] = sum_dn;
        if (kIsCentered) of_warps[turn][r * kRowSums + 1][threadIdx.x / kWarp] = sum_d;
      }
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kNormGradRows; ++r) {
      if (first + r >= end || !has_columns) continue;
      float sum_d = 0.0f;
      float sum_dn = 0.0f;
      for (int warp = 0; warp < num_warps; ++warp) {
        sum_dn += of_warps[turn][r * kRowSums][warp];
        if (kIsCentered) sum_d += of_warps[turn][r * kRowSums + 1][warp];
      }
      const NormGradRow<kIsCentered, T> row(arrays, first + r);
      const Floats<kPack> dy_row = WidenPack(dy[r]);
      const Floats<kPack> x_row = WidenPack(x[r]);
      const int64_t at = (first + r) * shape.columns + column;
      Floats<kPack> dx = row.Gradient(dy_row, x_row, gamma, sum_d / size, sum_dn / size);
      if (arrays.addend != nullptr) AddTo(arrays.addend + at, &dx);
      StoreFloats(dx, arrays.dx + at);
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        sums[0][i] = fmaf(dy_row[i], row.Normalized(x_row[i]), sums[0][i]);
        if (kIsCentered) sums[1][i] += dy_row[i];
        if (kSumsDx) sums[kSums - 1][i] += dx[i];
      }
    }
  }
  if (!has_columns) return;
#pragma unroll
  for (int s = 0; s < kSums; ++s) {
    const int64_t chunk = static_cast<int64_t>(s) * gridDim.x + blockIdx.x;
    StoreFloats(sums[s], partial + chunk * shape.columns + column);
  }
}

// ---- Two readings: the sums over rows, then a warp for each row.

template <bool kIsCentered, typename T>
struct ParameterGradientTerms {
  static constexpr int kSums = kIsCentered ? 2 : 1;
  NormGradArrays<T> arrays;
  int64_t columns;

  template <int kCount>
  __device__ void Add(int64_t row, int64_t column, Floats<kCount> (&sums)[kSums]) const {
    const int64_t at = row * columns + column;
    const Floats<kCount> dy = LoadFloats<kCount>(arrays.dy + at);
    const Floats<kCount> x = LoadFloats<kCount>(arrays.x + at);
    const NormGradRow<kIsCentered, T> of_row(arrays, row);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      sums[0][i] = fmaf(dy[i], of_row.Normalized(x[i]), sums[0][i]);
      if constexpr (kIsCentered) sums[1][i] += dy[i];
    }
  }
};

template <int kPack, bool kIsCentered, typename T>
__global__ void NormGradRowsKernel(NormGradArrays<T> arrays, MatrixShape shape) {
  const int64_t row = RowOfWarp();
  if (row >= shape.rows) return;
  const T* const dy = arrays.dy + row * shape.columns;
  const T* const x = arrays.x + row * shape.columns;
  const int64_t first = static_cast<int64_t>(threadIdx.x % kWarp) * kPack;
  const float size = static_cast<float>(shape.columns);
  const NormGradRow<kIsCentered, T> of_row(arrays, row);
  float sum_d = 0.0f;
  float sum_dn = 0.0f;
  for (int64_t j = first; j < shape.columns; j += kWarp * kPack) {
    of_row.AddTerms(LoadFloats<kPack>(dy + j), LoadFloats<kPack>(x + j),
                    LoadFloats<kPack>(arrays.gamma + j), &sum_d, &sum_dn);
  }
  const float mean_d = kIsCentered ? WarpSum(sum_d) / size : 0.0f;
  const float mean_dn = WarpSum(sum_dn) / size;
  for (int64_t j = first; j < shape.columns; j += kWarp * kPack) {
    const int64_t at = row * shape.columns + j;
    Floats<kPack> dx = of_row.Gradient(LoadFloats<kPack>(dy + j), LoadFloats<kPack>(x + j),
                                       LoadFloats<kPack>(arrays.gamma + j), mean_d, mean_dn);
    if (arrays.addend != nullptr) AddTo(arrays.addend + at, &dx);
    StoreFloats(dx, arrays.dx + at);
  }
}

// ---- Selection

template <bool kIsCentered>
class NormGrad : public Kernel {
 public:
  explicit NormGrad(const KernelSpec& spec)
      : dtype_(spec.call.inputs[1].dtype),
        x_(AsMatrix(spec.call.inputs[1].shape)),
        addend_(AddendOf(spec.call)),
        sums_dx_(spec.outputs.size() > 1 + kParameterSums) {}

  int64_t workspace_bytes() const override {
    const int64_t of_blocks =
        (kParameterSums + 1) * NumChunks() * x_.columns * static_cast<int64_t>(sizeof(float));
    return std::max(of_blocks, ColumnSumWorkspace(x_, kParameterSums));
  }

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) { return RunOf<decltype(zero)>(arguments); });
  }

 private:
  static constexpr int kParameterSums = kIsCentered ? 2 : 1;

  int64_t NumChunks() const { return CeilDivide(x_.rows, NormGradChunkRows(x_.rows)); }

  template <typename T>
  Status RunOf(const KernelArguments& arguments) {
    constexpr int kPack = kPackOf<T>;
    NormGradArrays<T> arrays = {};
    arrays.dy = arguments.input<T>(0);
    arrays.x = arguments.input<T>(1);
    arrays.gamma = arguments.input<T>(2);
    if (kIsCentered) arrays.mean = arguments.input<float>(3);
    arrays.rstd = arguments.input<float>(kIsCentered ? 4 : 3);
    if (addend_ >= 0) arrays.addend = arguments.input<T>(addend_);
    arrays.dx = arguments.output<T>(0);
    const bool is_aligned =
        x_.columns % kPack == 0 &&
        AreAligned(16, arrays.dy, arrays.x, arrays.gamma, arrays.addend, arrays.dx);
    if (NormGradThreads(x_.columns, is_aligned ? kPack : 1) > kMaxNormGradThreads) {
      return is_aligned ? RunTwice<kPack>(arrays, arguments) : RunTwice<1>(arrays, arguments);
    }
    if (is_aligned) {
      return sums_dx_ ? RunOnce<kPack, true>(arrays, arguments)
                      : RunOnce<kPack, false>(arrays, arguments);
    }
    return sums_dx_ ? RunOnce<1, true>(arrays, arguments) : RunOnce<1, false>(arrays, arguments);
  }

  template <int kPack, bool kSumsDx, typename T>
  Status RunOnce(const NormGradArrays<T>& arrays, const KernelArguments& arguments) {
    float* const partial = static_cast<float*>(arguments.workspace);
    LaunchShape launch;
    launch.grid = dim3(static_cast<unsigned>(NumChunks()));
    launch.block = dim3(static_cast<unsigned>(NormGradThreads(x_.columns, kPack)));
    ZG_RETURN_IF_ERROR(Launch(NormGradKernel<kPack, kIsCentered, kSumsDx, T>, launch,
                              arguments.stream, arrays, x_, NormGradChunkRows(x_.rows), partial));
    constexpr int kSums = kParameterSums + (kSumsDx ? 1 : 0);
    ColumnSumOutputs<T, kSums> outputs;
    for (int s = 0; s < kSums; ++s) outputs.sums[s] = arguments.output<T>(1 + s);
    return FinishColumnSums(partial, NumChunks(), x_.columns, outputs, arguments.stream);
  }

  template <int kPack, typename T>
  Status RunTwice(const NormGradArrays<T>& arrays, const KernelArguments& arguments) {
    ColumnSumOutputs<T, kParameterSums> outputs;
    for (int s = 0; s < kParameterSums; ++s) outputs.sums[s] = arguments.output<T>(1 + s);
    // First, because dx may overwrite dy or x.
    ZG_RETURN_IF_ERROR(SumColumns<kPack>(ParameterGradientTerms<kIsCentered, T>{arrays, x_.columns},
                                         x_, true, arguments.workspace, outputs, arguments.stream));
    ZG_RETURN_IF_ERROR(Launch(NormGradRowsKernel<kPack, kIsCentered, T>, WarpPerRow(x_.rows),
                              arguments.stream, arrays, x_));
    if (!sums_dx_) return Status::Ok();
    const ColumnSumOutputs<T, 1> sums = {{arguments.output<T>(1 + kParameterSums)}};
    return SumColumns<kPack>(ElementTerms<T>{arrays.dx, x_.columns}, x_, true, arguments.workspace,
                             sums, arguments.stream);
  }

  const DType dtype_;
  const MatrixShape x_;
  const int addend_;  // index among the inputs; -1: none
  const bool sums_dx_;
};

}  // namespace zg::cuda
