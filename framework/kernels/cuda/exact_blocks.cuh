// Exact sums of squares (framework/base/exact_sum.h) over the threads of a block.
#pragma once

#include "framework/base/exact_sum.h"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/cuda/reduce.cuh"

namespace zg::cuda {

// Squares are exact in f64; with s[i] = x[i]^2 + x[i + 8]^2 the sum is
// ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7)).
__device__ inline double SumOfSquares(const Floats<kSquareSumTermElements>& x) {
  double s[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const double low = x[i];
    const double high = x[i + 8];
    s[i] = low * low + high * high;
  }
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

// Lets one thread of the block call write(word, total) for each word of the sum of all threads'
// sums.
template <typename Write>
__device__ inline void WriteBlockSum(const ExactSum& sum, const Write& write) {
  int64_t own[kExactSumWords] = {};
  sum.AddTo(own);
  for (int word = 0; word < kExactSumWords; ++word) {
    const int64_t total = BlockSum(own[word]);
    if (threadIdx.x == 0) write(word, total);
  }
}

// The numbers are integers, so their order does not matter.
__device__ inline void AtomicAdd(int64_t* address, int64_t value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(address), static_cast<unsigned long long>(value));
}

}  // namespace zg::cuda
