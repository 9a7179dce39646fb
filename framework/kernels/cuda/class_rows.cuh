// Helpers of kernels that read logits: a block of kBlock threads for each row of classes, and the
// check of its target.
#pragma once

#include <string>

#include "framework/kernels/cuda/exp2.cuh"
#include "framework/kernels/cuda/fault.cuh"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/cuda/reduce.cuh"
#include "framework/kernels/math/vector_math.h"
#include "framework/kernels/parted_dim.h"

namespace zg::cuda {
namespace {

// *loss = sum of terms / divisor. One block.
__global__ void FinishLossKernel(const double* terms, int64_t count, double divisor, float* loss) {
  double sum = 0.0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) sum += terms[i];
  sum = BlockSum(sum);
  if (threadIdx.x == 0) *loss = static_cast<float>(sum / divisor);
}

// Calls f(first column, Floats) on all elements of a row, spread over the block's threads: in packs
// if `in_packs`, except the elements before the first and after the last 16-byte boundary.
template <int kBlock = kThreads, typename T, typename F>
__device__ inline void ForEachOfRow(const T* row, int64_t columns, bool in_packs, const F& f) {
  constexpr int kPack = kPackOf<T>;
  const int64_t misaligned = reinterpret_cast<uintptr_t>(row) % 16 / sizeof(T);
  int64_t body = misaligned == 0 ? 0 : kPack - misaligned;
  if (!in_packs || body > columns) body = columns;
  const int64_t tail = body + (columns - body) / kPack * kPack;
  for (int64_t i = threadIdx.x; i < body; i += kBlock) f(i, LoadFloats<1>(row + i));
  for (int64_t i = body + static_cast<int64_t>(threadIdx.x) * kPack; i < tail;
       i += kBlock * kPack) {
    f(i, LoadFloats<kPack>(row + i));
  }
  for (int64_t i = tail + threadIdx.x; i < columns; i += kBlock) f(i, LoadFloats<1>(row + i));
}

// e^(x - shift) for several x. In f32 as on the CPU; in 16 bits with one multiply-add and the
// device's power of 2.
template <typename T>
class ExpOfDifference {
 public:
  __device__ explicit ExpOfDifference(float shift)
      : shift_(sizeof(T) == 2 ? -shift * kLog2E : shift) {}

  __device__ float operator()(float x) const {
    if constexpr (sizeof(T) == 2) return Exp2(fmaf(x, kLog2E, shift_));
    return Exp(x - shift_);
  }

 private:
  const float shift_;
};

// A running ln(sum of e^x) = maximum + ln(sum).
template <typename T>
struct SoftmaxSum {
  float maximum = -INFINITY;
  float sum = 0.0f;

  template <int kCount>
  __device__ void Add(const Floats<kCount>& x) {
    float largest = maximum;
#pragma unroll
    for (int i = 0; i < kCount; ++i) largest = fmaxf(largest, x[i]);  // a NaN is in the sum
    Raise(largest);
    // If everything so far is -infinity, the difference from it would be NaN.
    const ExpOfDifference<T> term(maximum == -INFINITY ? 0.0f : maximum);
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum += term(x[i]);
  }

  __device__ void Raise(float largest) {
    if (largest == maximum) return;
    sum *= ExpOfDifference<T>(largest)(maximum);
    maximum = largest;
  }
};

struct MaximumAndSum {
  float maximum = -INFINITY;
  float sum = 0.0f;  // of e^(x - maximum)
};

// For a row, by a block, which reads it once; `of_warps` is shared memory for two values per warp that
// nothing else uses. Every element is also given to keep(first column, Floats).
template <int kBlock = kThreads, typename T, typename Keep>
__device__ inline MaximumAndSum SumRow(const T* row, int64_t columns, float* of_warps,
                                       const Keep& keep) {
  SoftmaxSum<T> part;
  ForEachOfRow<kBlock>(row, columns, true, [&](int64_t begin, const auto& x) {
    part.Add(x);
    keep(begin, x);
  });
  constexpr int kWarps = kBlock / kWarp;
  float* const maxima = of_warps;
  float* const sums = of_warps + kWarps;
  float maximum = WarpMax(part.maximum);
  if (threadIdx.x % kWarp == 0) maxima[threadIdx.x / kWarp] = maximum;
  __syncthreads();
  for (int warp = 0; warp < kWarps; ++warp) {
    maximum = maximum > maxima[warp] ? maximum : maxima[warp];
  }
  part.Raise(maximum);
  const float sum_of_warp = WarpSum(part.sum);
  if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = sum_of_warp;
  __syncthreads();
  float sum = sums[0];
  for (int warp = 1; warp < kWarps; ++warp) sum += sums[warp];
  return {maximum, sum};
}

template <typename T>
__device__ inline MaximumAndSum SumRow(const T* row, int64_t columns, float* of_warps) {
  return SumRow(row, columns, of_warps, [](int64_t, const auto&) {});
}

// out = (softmax(x) - onehot(target)) scale of a row, of which `x` holds the elements at the same
// distances from 16-byte boundaries as `out`, if `in_packs`. `out` may be `x`.
template <int kBlock = kThreads, typename T>
__device__ inline void WriteSoftmaxMinusOneHot(const T* x, T* out, int64_t columns, bool in_packs,
                                               float log_sum_exp, int64_t target, float scale) {
  const ExpOfDifference<T> probability(log_sum_exp);
  ForEachOfRow<kBlock>(x, columns, in_packs, [&](int64_t begin, auto values) {
    constexpr int kCount = sizeof(values) / sizeof(float);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = probability(values[i]);
    if (begin <= target && target < begin + kCount) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] -= begin + i == target ? 1.0f : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] *= scale;
    StoreFloats(values, out + begin);
  });
}

// Whether two addresses lie at the same distance from 16-byte boundaries.
__device__ inline bool AreAlike(const void* a, const void* b) {
  return (reinterpret_cast<uintptr_t>(a) - reinterpret_cast<uintptr_t>(b)) % 16 == 0;
}

// The index of the target in this call; -1 if the target is in another part, or does not exist,
// which thread 0 records.
__device__ inline int64_t FindTarget(int64_t target, const PartedDim& classes, FaultSink faults) {
  if (target >= 0 && target < classes.Total()) return classes.Find(target);
  if (threadIdx.x == 0) faults.Record(target, classes.Total());
  return -1;
}

inline std::string TargetOutOfRange(const char* op, const DeviceFault& fault) {
  return fmt::format("{}: a target is {}, the logits have classes 0 to {}", op, fault.got,
                     fault.limit - 1);
}

}  // namespace
}  // namespace zg::cuda
