// The part of the CUDA runtime that this project's kernels use, on the host (tests/cuda_emulation).
// It stands in front of the toolkit's header of this name.
#pragma once

#include <math.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(threads)
// One block runs at a time, so that a variable of the program is one of the block.
#define __shared__ static
#define __syncthreads() ::zg::emulation::Synchronize(__FILE__, __LINE__)

enum cudaError_t {
  cudaSuccess,
  cudaErrorInvalidValue,
  cudaErrorMemoryAllocation,
  cudaErrorInvalidConfiguration,
  cudaErrorAssert,
  cudaErrorECCUncorrectable,
  cudaErrorHardwareStackError,
  cudaErrorIllegalAddress,
  cudaErrorIllegalInstruction,
  cudaErrorInvalidAddressSpace,
  cudaErrorInvalidPc,
  cudaErrorLaunchFailure,
  cudaErrorLaunchTimeout,
  cudaErrorMisalignedAddress,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaDataType_t { CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF };
using cudaDataType = cudaDataType_t;
using cudaStream_t = struct CUstream_st*;

struct uint3 {
  unsigned x, y, z;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
};

namespace zg::emulation {

// Of the running thread.
struct Coordinates {
  uint3 thread;
  uint3 block;
  dim3 block_dim;
  dim3 grid_dim;
};
extern Coordinates coordinates;

struct GridLaunch {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  void (*run)(const void* parameters);
  const void* parameters;
  size_t parameter_bytes;
};
cudaError_t RunGrid(const GridLaunch& launch);
cudaError_t CheckSharedBytes(const void* kernel, size_t bytes);
cudaError_t AllowSharedBytes(const void* kernel, int bytes);

void Synchronize(const char* file, int line);
uint64_t ShuffleXor(unsigned mask, uint64_t value, int distance);
int Atomic(int* address, int (*change)(int old, int a, int b), int a, int b);
unsigned long long AtomicAdd(unsigned long long* address, unsigned long long value);

}  // namespace zg::emulation

inline const uint3& threadIdx = zg::emulation::coordinates.thread;
inline const uint3& blockIdx = zg::emulation::coordinates.block;
inline const dim3& blockDim = zg::emulation::coordinates.block_dim;
inline const dim3& gridDim = zg::emulation::coordinates.grid_dim;

inline void __stwb(uint4* address, uint4 value) { *address = value; }
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int distance) {
  uint64_t bits = 0;
  static_assert(sizeof(T) <= sizeof(bits));
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = zg::emulation::ShuffleXor(mask, bits, distance);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}
inline int atomicAdd(int* address, int value) {
  return zg::emulation::Atomic(
      address, [](int old, int a, int) { return old + a; }, value, 0);
}
inline unsigned long long atomicAdd(unsigned long long* address, unsigned long long value) {
  return zg::emulation::AtomicAdd(address, value);
}
inline int atomicCAS(int* address, int compare, int value) {
  return zg::emulation::Atomic(
      address, [](int old, int a, int b) { return old == a ? b : old; }, compare, value);
}

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  using Call = std::pair<void (*)(Parameters...), std::tuple<std::decay_t<Parameters>...>>;
  const Call call = {kernel, {std::forward<Arguments>(arguments)...}};
  const cudaError_t error = zg::emulation::CheckSharedBytes(reinterpret_cast<const void*>(kernel),
                                                            config->dynamicSmemBytes);
  if (error != cudaSuccess) return error;
  return zg::emulation::RunGrid({config->gridDim, config->blockDim, config->dynamicSmemBytes,
                                 [](const void* parameters) {
                                   const Call& call = *static_cast<const Call*>(parameters);
                                   std::apply(call.first, call.second);
                                 },
                                 &call, sizeof(call)});
}

template <typename... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute, int value) {
  return zg::emulation::AllowSharedBytes(reinterpret_cast<const void*>(kernel), value);
}

cudaError_t cudaDeviceSynchronize();
cudaError_t cudaFree(void* memory);
cudaError_t cudaGetDevice(int* device);
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaMalloc(void** memory, size_t bytes);
template <typename T>
cudaError_t cudaMalloc(T** memory, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(memory), bytes);
}
cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemset(void* memory, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream);
// Each stream runs kernels in another order of threads than the one before.
cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
