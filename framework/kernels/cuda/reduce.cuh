// Sums and maxima over the threads of a warp or a block, always in the same order.
#pragma once

#include "framework/kernels/cuda/kernel_util.h"

namespace zg::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;

// Every lane gets the sum over its group of kLanes neighbouring lanes: butterflies add the same two
// numbers on both sides.
template <int kLanes = kWarp, typename T>
__device__ inline T WarpSum(T value) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  return value;
}

template <int kLanes = kWarp>
__device__ inline float WarpMax(float value) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, value, distance);
    value = value > other ? value : other;
  }
  return value;
}

// Every thread of a block of kThreads gets the sum of all.
template <typename T>
__device__ inline T BlockSum(T value) {
  __shared__ T warps[kThreads / kWarp];
  value = WarpSum(value);
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = value;
  __syncthreads();
  T sum = warps[0];
  for (int warp = 1; warp < kThreads / kWarp; ++warp) sum += warps[warp];
  __syncthreads();  // before the next call writes to `warps`
  return sum;
}

}  // namespace zg::cuda
