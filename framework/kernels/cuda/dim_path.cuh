// The elements along one dim of a tensor (outer, size, inner), one after the other, for kernels in
// which a thread goes through them.
#pragma once

#include <cstdint>

#include "framework/kernels/cuda/kernel_util.h"

namespace zg::cuda {

struct DimPath {
  int64_t size, inner;
  bool backwards;  // from the last element on

  // The position of the first element of path `column` out of outer x inner, and the way to the next.
  __device__ int64_t First(int64_t column) const {
    const int64_t begin = column / inner * size * inner + column % inner;
    return backwards ? begin + (size - 1) * inner : begin;
  }
  __device__ int64_t Step() const { return backwards ? -inner : inner; }
};

}  // namespace zg::cuda
