// The functions of the CUDA runtime that are not launches.
#include <cuda_runtime.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "framework/base/check.h"
#include "tests/cuda_emulation/launch.h"
#include "tests/cuda_emulation/memory.h"
#include "tests/cuda_emulation/streams.h"

namespace zg::emulation {
namespace {

constexpr size_t kUnaskedSharedBytes = size_t{48} << 10;

std::map<const void*, size_t>& AllowedSharedBytes() {
  static auto& allowed = *new std::map<const void*, size_t>;
  return allowed;
}

}  // namespace

cudaError_t CheckSharedBytes(const void* kernel, size_t bytes) {
  const std::lock_guard<std::mutex> lock(DeviceMutex());
  const auto found = AllowedSharedBytes().find(kernel);
  const size_t allowed = found == AllowedSharedBytes().end() ? kUnaskedSharedBytes : found->second;
  return bytes <= allowed ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t AllowSharedBytes(const void* kernel, int bytes) {
  if (bytes < 0 || static_cast<size_t>(bytes) > kMaxSharedBytes) return cudaErrorInvalidValue;
  const std::lock_guard<std::mutex> lock(DeviceMutex());
  AllowedSharedBytes()[kernel] = static_cast<size_t>(bytes);
  return cudaSuccess;
}

}  // namespace zg::emulation

using zg::emulation::DeviceMutex;
using zg::emulation::IsAllocated;
using zg::emulation::IsPinned;
using zg::emulation::Queue;
using Lock = std::unique_lock<std::mutex>;

cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }

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
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorPeerAccessAlreadyEnabled:
      return "cudaErrorPeerAccessAlreadyEnabled";
    case cudaErrorStreamCaptureIsolation:
      return "cudaErrorStreamCaptureIsolation";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    default:
      return "cudaErrorLaunchFailure";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  const bool is_of_launch =
      error >= cudaErrorInvalidConfiguration && error <= cudaErrorMisalignedAddress;
  if (!is_of_launch) return cudaGetErrorName(error);
  thread_local std::string message;
  const Lock lock(DeviceMutex());
  message = zg::emulation::LastMessage();
  return message.c_str();
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  const Lock lock(DeviceMutex());
  *memory = zg::emulation::Allocate(bytes);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  zg::emulation::WaitForOwnStreams();
  const Lock lock(DeviceMutex());
  ZG_CHECK(!zg::emulation::IsMappedElsewhere(memory), "memory is freed that a process has mapped");
  return zg::emulation::Free(memory) ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  const Lock lock(DeviceMutex());
  *free_bytes = zg::emulation::FreeBytes();
  *total_bytes = size_t{256} << 20;
  return cudaSuccess;
}

namespace {

cudaError_t CopyNow(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  if (kind != cudaMemcpyDeviceToHost && !IsAllocated(target, bytes)) return cudaErrorInvalidValue;
  if (kind != cudaMemcpyHostToDevice && !IsAllocated(source, bytes)) return cudaErrorInvalidValue;
  if (bytes > 0) std::memcpy(target, source, bytes);
  return cudaSuccess;
}
cudaError_t SetNow(void* memory, int value, size_t bytes) {
  if (!IsAllocated(memory, bytes)) return cudaErrorInvalidValue;
  if (bytes > 0) std::memset(memory, value, bytes);
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  const Lock lock(DeviceMutex());
  return CopyNow(target, source, bytes, kind);
}
// From host memory that is not pinned, the current content is copied; a copy to such memory is
// waited for.
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (stream == nullptr) return cudaMemcpy(target, source, bytes, kind);
  if (kind == cudaMemcpyHostToDevice && !IsPinned(source, bytes)) {
    const char* const begin = static_cast<const char*>(source);
    return Queue(stream, {[target, kind, copy = std::vector<char>(begin, begin + bytes)] {
                   return CopyNow(target, copy.data(), copy.size(), kind);
                 }});
  }
  const cudaError_t queued = Queue(
      stream, {[target, source, bytes, kind] { return CopyNow(target, source, bytes, kind); }});
  if (queued != cudaSuccess || kind != cudaMemcpyDeviceToHost || IsPinned(target, bytes)) {
    return queued;
  }
  return cudaStreamSynchronize(stream);
}
cudaError_t cudaMemcpy2DAsync(void* target, size_t target_stride, const void* source,
                              size_t source_stride, size_t bytes, size_t rows, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  for (size_t row = 0; row < rows; ++row) {
    const cudaError_t error = cudaMemcpyAsync(
        static_cast<char*>(target) + row * target_stride,
        static_cast<const char*>(source) + row * source_stride, bytes, kind, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  const Lock lock(DeviceMutex());
  return SetNow(memory, value, bytes);
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return Queue(stream, {[memory, value, bytes] { return SetNow(memory, value, bytes); }});
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  const Lock lock(DeviceMutex());
  *stream = nullptr;
  zg::emulation::NextThreadOrder();
  return cudaSuccess;
}
