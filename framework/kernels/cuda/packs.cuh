// Elements in packs of 16 bytes, and kernels in which every thread has its own pack.
//
//   struct Negate {                                      // a body
//     const float* x;
//     float* y;
//     template <int kCount> __device__ void Run(int64_t begin) const;  // [begin, begin + kCount)
//   };
//   RunPacks<4>(Negate{x, y}, AreAligned(16, x, y), num_elements, arguments.stream);
#pragma once

#include <cstdint>
#include <cstring>

#include "framework/kernels/cuda/kernel_util.h"
#include "framework/kernels/cuda/rounding.cuh"
#include "framework/tensor/half.h"

namespace zg::cuda {

template <typename T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) Pack {
  T values[kCount];
};

// Elements of T in 16 bytes.
template <typename T>
inline constexpr int kPackOf = 16 / static_cast<int>(sizeof(T));

template <int kCount>
struct Floats {
  float values[kCount];
  __device__ float& operator[](int i) { return values[i]; }
  __device__ const float& operator[](int i) const { return values[i]; }
};

template <typename T, int kCount>
__device__ inline Floats<kCount> WidenPack(const Pack<T, kCount>& pack) {
  Floats<kCount> floats;
#pragma unroll
  for (int i = 0; i < kCount; ++i) floats[i] = Widen(pack.values[i]);
  return floats;
}

template <int kCount, typename T>
__device__ inline Floats<kCount> LoadFloats(const T* data) {
  const Pack<T, kCount> pack = *reinterpret_cast<const Pack<T, kCount>*>(data);  // in one load
  return WidenPack(pack);
}

// Stores 16 bytes of elements, rounded to T, from floats[first] on.
template <typename T, int kCount>
__device__ inline uint4 PackWords(const Floats<kCount>& floats, int first) {
  if constexpr (sizeof(T) == 2) {
    return {PackPair(T(), floats[first], floats[first + 1]),
            PackPair(T(), floats[first + 2], floats[first + 3]),
            PackPair(T(), floats[first + 4], floats[first + 5]),
            PackPair(T(), floats[first + 6], floats[first + 7])};
  } else {
    uint4 words;
    memcpy(&words, &floats[first], sizeof(words));
    return words;
  }
}

// Rounds to T. Uses stores of 16 bytes where there are that many elements, because the compiler may
// split a Pack.
template <int kCount, typename T>
__device__ inline void StoreFloats(const Floats<kCount>& floats, T* data) {
  if constexpr (kCount % kPackOf<T> == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += kPackOf<T>) {
      __stwb(reinterpret_cast<uint4*>(data + i), PackWords<T>(floats, i));
    }
  } else {
    Pack<T, kCount> pack;
#pragma unroll
    for (int i = 0; i < kCount; ++i) pack.values[i] = Round<T>(floats[i]);
    *reinterpret_cast<Pack<T, kCount>*>(data) = pack;
  }
}

// What one block of threads does from `block_begin` on: each thread kPack elements in a row, or, where
// operands are not aligned and at the end, single elements.
template <int kPack, typename Body, typename... Prepared>
__device__ inline void RunBlock(const Body& body, int64_t block_begin, int64_t num_elements,
                                bool is_aligned, const Prepared&... prepared) {
  int64_t begin = block_begin + static_cast<int64_t>(threadIdx.x) * kPack;
  int64_t end = begin + kPack;
  if constexpr (kPack == 1) {
    if (begin < num_elements) body.template Run<1>(begin, prepared...);
  } else if (is_aligned && end <= num_elements) {
    body.template Run<kPack>(begin, prepared...);
  } else {
    int64_t stride = 1;
    if (!is_aligned) {  // a warp's elements side by side
      begin = block_begin + threadIdx.x;
      end = block_begin + static_cast<int64_t>(blockDim.x) * kPack;
      stride = blockDim.x;
    }
    if (end > num_elements) end = num_elements;
#pragma unroll 1
    for (int64_t i = begin; i < end; i += stride) body.template Run<1>(i, prepared...);
  }
}

template <int kPack, typename Body>
__global__ void PackKernel(Body body, int64_t num_elements, bool is_aligned) {
  RunBlock<kPack>(body, static_cast<int64_t>(blockIdx.x) * blockDim.x * kPack, num_elements,
                  is_aligned);
}

template <int kPack, typename Body>
Status RunPacks(const Body& body, bool is_aligned, int64_t num_elements, void* stream) {
  return Launch(PackKernel<kPack, Body>, Threads(CeilDivide(num_elements, kPack)), stream, body,
                num_elements, is_aligned);
}

// For bodies that need a value that is computed first, once for each block:
//   using Prepared = ...;                         // without constructors
//   __device__ Prepared Prepare() const;
//   template <int kCount> __device__ void Run(int64_t begin, const Prepared& prepared) const;
inline constexpr int64_t kMaxPreparedBlocks = 2048;

template <int kPack, typename Body>
__global__ void PreparedPackKernel(Body body, int64_t num_elements, bool is_aligned) {
  __shared__ typename Body::Prepared prepared;
  if (threadIdx.x == 0) prepared = body.Prepare();
  __syncthreads();
  const int64_t block = static_cast<int64_t>(blockDim.x) * kPack;
  for (int64_t begin = blockIdx.x * block; begin < num_elements; begin += gridDim.x * block) {
    RunBlock<kPack>(body, begin, num_elements, is_aligned, prepared);
  }
}

template <int kPack, typename Body>
Status RunPreparedPacks(const Body& body, bool is_aligned, int64_t num_elements, void* stream) {
  LaunchShape shape = Threads(CeilDivide(num_elements, kPack));
  if (shape.grid.x > kMaxPreparedBlocks) shape.grid.x = kMaxPreparedBlocks;
  return Launch(PreparedPackKernel<kPack, Body>, shape, stream, body, num_elements, is_aligned);
}

}  // namespace zg::cuda
