// Devices, pinned host memory, and memory that several processes map, on the emulated device.
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "framework/base/check.h"
#include "tests/cuda_emulation/memory.h"
#include "tests/cuda_emulation/streams.h"

namespace zg::emulation {
namespace {

using Lock = std::unique_lock<std::mutex>;

struct Devices {
  int count = 1;
  bool have_peer_access = true;
  bool next_open_fails = false;
  std::map<const char*, size_t> pinned;  // by begin: bytes
  std::map<void*, int> num_mapped;       // allocations that other processes have open
};

Devices& All() {
  static auto& devices = *new Devices;
  return devices;
}

thread_local int current_device = 0;

struct IpcHandle {
  void* memory;
  std::thread::id process;
};
static_assert(sizeof(IpcHandle) <= sizeof(cudaIpcMemHandle_t));

}  // namespace

void SetDevices(int count, bool have_peer_access) {
  const Lock lock(DeviceMutex());
  All().count = count;
  All().have_peer_access = have_peer_access;
}

void FailNextIpcOpen() {
  const Lock lock(DeviceMutex());
  All().next_open_fails = true;
}

void EndProcesses() {
  const Lock lock(DeviceMutex());
  All().num_mapped.clear();
  FreeAll();
}

bool IsMappedElsewhere(void* memory) {
  const auto found = All().num_mapped.find(memory);
  return found != All().num_mapped.end() && found->second > 0;
}

bool IsPinned(const void* memory, size_t bytes) {
  const Lock lock(DeviceMutex());
  const char* const begin = static_cast<const char*>(memory);
  auto after = All().pinned.upper_bound(begin);
  if (after == All().pinned.begin()) return false;
  --after;
  return begin + bytes <= after->first + after->second;
}

}  // namespace zg::emulation

using namespace zg::emulation;  // NOLINT: all of this file is of it

cudaError_t cudaGetDeviceCount(int* count) {
  const Lock lock(DeviceMutex());
  *count = All().count;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  std::snprintf(properties->name, sizeof(properties->name), "emulated");
  cudaDeviceGetAttribute(&properties->major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&properties->minor, cudaDevAttrComputeCapabilityMinor, device);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

cudaError_t cudaDeviceGetPCIBusId(char* bus_id, int bytes, int device) {
  std::snprintf(bus_id, static_cast<size_t>(bytes), "0000:%02x:00.0", device);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* bus_id) {
  const Lock lock(DeviceMutex());
  *device = static_cast<int>(std::strtol(bus_id + 5, nullptr, 16));
  return *device < All().count ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaDeviceCanAccessPeer(int* can_access, int, int) {
  const Lock lock(DeviceMutex());
  *can_access = All().have_peer_access ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return All().have_peer_access ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory) {
  if (!IsAllocated(memory, 1)) return cudaErrorInvalidValue;
  const IpcHandle own = {memory, std::this_thread::get_id()};
  std::memcpy(handle->reserved, &own, sizeof(own));
  return cudaSuccess;
}
cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned flags) {
  const Lock lock(DeviceMutex());
  if (std::exchange(All().next_open_fails, false)) return cudaErrorInvalidValue;
  IpcHandle exported;
  std::memcpy(&exported, handle.reserved, sizeof(exported));
  // A process cannot open its own handle.
  if (exported.process == std::this_thread::get_id() || flags != cudaIpcMemLazyEnablePeerAccess) {
    return cudaErrorInvalidValue;
  }
  if (!IsAllocated(exported.memory, 1)) return cudaErrorInvalidValue;
  ++All().num_mapped[exported.memory];
  *memory = exported.memory;
  return cudaSuccess;
}
cudaError_t cudaIpcCloseMemHandle(void* memory) {
  const Lock lock(DeviceMutex());
  ZG_CHECK(IsMappedElsewhere(memory), "memory is closed that is not open");
  --All().num_mapped[memory];
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  const Lock lock(DeviceMutex());
  All().pinned[static_cast<const char*>(memory)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* memory) {
  const Lock lock(DeviceMutex());
  return All().pinned.erase(static_cast<const char*>(memory)) == 1 ? cudaSuccess
                                                                   : cudaErrorInvalidValue;
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  *memory = std::malloc(bytes);
  return cudaHostRegister(*memory, bytes, cudaHostRegisterDefault);
}
cudaError_t cudaFreeHost(void* memory) {
  const cudaError_t error = cudaHostUnregister(memory);
  std::free(memory);
  return error;
}
