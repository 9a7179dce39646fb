// Kernels in which a warp processes a row of a matrix.
#pragma once

#include "framework/kernels/cuda/kernel_util.h"

namespace zg::cuda {

// A warp reads its row several times, but from the first-level cache.
inline constexpr int kRowsPerBlock = kThreads / kWarp;

__device__ inline int64_t RowOfWarp() {
  return static_cast<int64_t>(blockIdx.x) * kRowsPerBlock + threadIdx.x / kWarp;
}

inline LaunchShape WarpPerRow(int64_t rows) {
  return {dim3(static_cast<unsigned>(CeilDivide(rows, kRowsPerBlock)))};
}

}  // namespace zg::cuda
