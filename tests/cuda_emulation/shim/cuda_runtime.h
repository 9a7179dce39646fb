// The part of the CUDA runtime that this project's kernels use, on the host (tests/cuda_emulation).
// It replaces the toolkit's header of this name.
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
#define __launch_bounds__(...)
#define __grid_constant__
// One block runs at a time, so a variable of the program serves as a variable of the block.
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
  cudaErrorNotReady,
  cudaErrorPeerAccessAlreadyEnabled,
  cudaErrorStreamCaptureIsolation,
  cudaErrorStreamCaptureUnjoined,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaDataType_t { CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF };
using cudaDataType = cudaDataType_t;
using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
using cudaGraph_t = struct CUgraph_st*;
using cudaGraphExec_t = struct CUgraphExec_st*;
enum { cudaStreamNonBlocking = 1 };
enum { cudaEventDisableTiming = 2 };
enum { cudaHostRegisterDefault };
enum { cudaIpcMemLazyEnablePeerAccess = 1 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };

enum cudaDeviceAttr { cudaDevAttrComputeCapabilityMajor, cudaDevAttrComputeCapabilityMinor };
struct cudaDeviceProp {
  char name[256];
  int major;
  int minor;
};
struct cudaIpcMemHandle_t {
  char reserved[64];
};

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

// The coordinates of the running thread.
struct Coordinates {
  uint3 thread;
  uint3 block;
  dim3 block_dim;
  dim3 grid_dim;
};
extern Coordinates coordinates;

// Queues the call of a kernel, or runs it at once if there is no stream: `run` gets a copy of `call`.
cudaError_t LaunchOn(const cudaLaunchConfig_t& config, const void* kernel,
                     void (*run)(const void* call), const void* call, size_t call_bytes);
cudaError_t AllowSharedBytes(const void* kernel, int bytes);

void Synchronize(const char* file, int line);
uint64_t ShuffleXor(unsigned mask, uint64_t value, int distance);
int Atomic(int* address, int (*change)(int old, int a, int b), int a, int b);
unsigned long long AtomicAdd(unsigned long long* address, unsigned long long value);
unsigned long long AtomicMax(unsigned long long* address, unsigned long long value);

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
inline unsigned long long atomicMax(unsigned long long* address, unsigned long long value) {
  return zg::emulation::AtomicMax(address, value);
}
inline int atomicCAS(int* address, int compare, int value) {
  return zg::emulation::Atomic(
      address, [](int old, int a, int b) { return old == a ? b : old; }, compare, value);
}

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  static_assert((std::is_trivially_copyable_v<std::decay_t<Parameters>> && ...));
  struct Call {
    void (*kernel)(Parameters...);
    std::tuple<std::decay_t<Parameters>...> parameters;
  };
  static_assert(alignof(Call) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  const Call call = {kernel, {std::forward<Arguments>(arguments)...}};
  return zg::emulation::LaunchOn(
      *config, reinterpret_cast<const void*>(kernel),
      [](const void* bytes) {
        const Call& copy = *static_cast<const Call*>(bytes);
        std::apply(copy.kernel, copy.parameters);
      },
      &call, sizeof(Call));
}

template <typename... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute, int value) {
  return zg::emulation::AllowSharedBytes(reinterpret_cast<const void*>(kernel), value);
}

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* bus_id);
cudaError_t cudaDeviceGetPCIBusId(char* bus_id, int bytes, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaFree(void* memory);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void* memory);
cudaError_t cudaIpcCloseMemHandle(void* memory);
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory);
cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned flags);
cudaError_t cudaMalloc(void** memory, size_t bytes);
template <typename T>
cudaError_t cudaMalloc(T** memory, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(memory), bytes);
}
cudaError_t cudaMallocHost(void** memory, size_t bytes);
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes);
cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemcpy2DAsync(void* target, size_t target_stride, const void* source,
                              size_t source_stride, size_t bytes, size_t rows, cudaMemcpyKind kind,
                              cudaStream_t stream);
cudaError_t cudaMemset(void* memory, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
// The null stream; each runs kernels in another order of threads than the one before.
cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
