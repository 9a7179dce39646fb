// The dot products of dout and out that attention's gradients start from.
#pragma once

#include "framework/kernels/cuda/attention_rows.cuh"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/cuda/reduce.cuh"

namespace zg::cuda {

inline constexpr int kLanesOfDot = 8;
inline constexpr int kRowsOfDotBlock = kThreads / kLanesOfDot;

// dot[b, h, t] = dout . out: eight lanes for each, which read 16 bytes at a time if `kAligned`. A
// block processes a head (x, z) and kRowsOfDotBlock positions (y).
template <bool kAligned, typename T>
__global__ void AttentionDotKernel(AttentionGradArrays<T> arrays, AttentionShape shape) {
  constexpr int kPack = kAligned ? kPackOf<T> : 1;
  const Head at = HeadOfBlock(shape.heads);
  if (at.batch >= shape.batch) return;
  const int lane = static_cast<int>(threadIdx.x) % kLanesOfDot;
  const int position = static_cast<int>(blockIdx.y * kRowsOfDotBlock + threadIdx.x / kLanesOfDot);
  const bool is_inside = position < shape.queries;
  const int64_t row = is_inside ? position * shape.out.stride : 0;
  const T* const dout = QueryRows(arrays.dout, shape.out, shape, at).begin + row;
  const T* const out = QueryRows(arrays.out, shape.out, shape, at).begin + row;
  float sum = 0.0f;
  for (int channel = lane * kPack; channel < shape.head_size; channel += kLanesOfDot * kPack) {
    const Floats<kPack> a = LoadFloats<kPack>(dout + channel);
    const Floats<kPack> b = LoadFloats<kPack>(out + channel);
#pragma unroll
    for (int i = 0; i < kPack; ++i) sum = fmaf(a[i], b[i], sum);
  }
  sum = WarpSum<kLanesOfDot>(sum);
  if (lane == 0 && is_inside) arrays.dot[FirstRow(shape, at) + position] = sum;
}

}  // namespace zg::cuda
