// The functions of the CUDA runtime that are not launches.
#include <cuda_runtime.h>

#include <cstring>
#include <map>

#include "tests/cuda_emulation/launch.h"
#include "tests/cuda_emulation/memory.h"

namespace zg::emulation {
namespace {

constexpr size_t kUnaskedSharedBytes = size_t{48} << 10;

std::map<const void*, size_t>& AllowedSharedBytes() {
  static auto& allowed = *new std::map<const void*, size_t>;
  return allowed;
}

}  // namespace

cudaError_t CheckSharedBytes(const void* kernel, size_t bytes) {
  const auto found = AllowedSharedBytes().find(kernel);
  const size_t allowed = found == AllowedSharedBytes().end() ? kUnaskedSharedBytes : found->second;
  return bytes <= allowed ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t AllowSharedBytes(const void* kernel, int bytes) {
  if (bytes < 0 || static_cast<size_t>(bytes) > kMaxSharedBytes) return cudaErrorInvalidValue;
  AllowedSharedBytes()[kernel] = static_cast<size_t>(bytes);
  return cudaSuccess;
}

}  // namespace zg::emulation

using zg::emulation::IsAllocated;

cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorMisalignedAddress:
      return "cudaErrorMisalignedAddress";
    case cudaErrorInvalidAddressSpace:
      return "cudaErrorInvalidAddressSpace";
    case cudaErrorLaunchTimeout:
      return "cudaErrorLaunchTimeout";
    default:
      return "cudaErrorLaunchFailure";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  const bool is_of_launch = error >= cudaErrorInvalidConfiguration;
  return is_of_launch ? zg::emulation::LastMessage().c_str() : cudaGetErrorName(error);
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = zg::emulation::Allocate(bytes);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  return memory == nullptr || zg::emulation::Free(memory) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  if (kind != cudaMemcpyDeviceToHost && !IsAllocated(target, bytes)) return cudaErrorInvalidValue;
  if (kind != cudaMemcpyHostToDevice && !IsAllocated(source, bytes)) return cudaErrorInvalidValue;
  std::memcpy(target, source, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
  return cudaMemcpy(target, source, bytes, kind);
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  if (!IsAllocated(memory, bytes)) return cudaErrorInvalidValue;
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t) {
  return cudaMemset(memory, value, bytes);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = nullptr;
  zg::emulation::NextThreadOrder();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
