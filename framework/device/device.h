// Device: the memory that a rank's kernels work on, and its queues of work. Work goes to the queue
// in use. Each queue runs in order, concurrently with the other unless an event orders them. On the
// host, work is done when the call returns.
//
//   ZG_ASSIGN_OR_RETURN(DeviceBytes memory, device.Allocate(bytes));
//   ZG_RETURN_IF_ERROR(device.CopyIn(memory.get(), values, bytes));
//   ZG_RETURN_IF_ERROR(device.Synchronize());  // `values` may change from here on
//
// Used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/status.h"

namespace zg {

// Memory of a device, which the destructor frees.
using DeviceBytes = std::unique_ptr<std::byte[], std::function<void(std::byte*)>>;

enum class DeviceQueue { kWork, kTransfers };

// A point in a queue.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  virtual Status Record() = 0;          // records it after the current work of the queue in use
  virtual StatusOr<bool> IsDone() = 0;  // also true before it is recorded
  virtual Status Wait() = 0;            // waits until its queue has passed it
  // Makes the queue in use wait until the event's queue has passed it.
  virtual Status QueueWait() = 0;
};

// Queued work that was recorded once and can be queued again as a whole.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  virtual Status Replay() = 0;
};

// `count` rows of `bytes` each, at regular distances.
struct CopiedRows {
  std::byte* to = nullptr;
  int64_t to_stride = 0;
  const std::byte* from = nullptr;
  int64_t from_stride = 0;
  int64_t bytes = 0;
  int64_t count = 0;
};

struct DeviceMemoryUse {
  int64_t free_bytes = 0;  // for all programs on the device together
  // Memory taken since the device was opened, but not by Allocate: for libraries, the code of
  // kernels and recorded work.
  int64_t library_bytes = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;  // "cpu", "cuda:0 (NVIDIA H200)"
  // Whether its memory is the host's and its work is done at once. Then there is no queue.
  bool is_host() const { return stream() == nullptr; }
  // The queue in use: KernelArguments::stream; null on the host.
  virtual void* stream() const = 0;
  // The queue for computation is in use at the beginning.
  virtual Status UseQueue(DeviceQueue queue) = 0;
  // Switches to the queue for computation and makes it wait for the transfers queued so far.
  virtual Status JoinQueues() = 0;

  // Zeroed, aligned to 256 bytes (on the host to 4096). Error: too little memory, by how much.
  virtual StatusOr<DeviceBytes> Allocate(int64_t bytes) = 0;
  // Host memory that the device accesses by itself; copies from and to other host memory may wait
  // for the queue. Not zeroed.
  virtual StatusOr<DeviceBytes> AllocatePinned(int64_t bytes) = 0;
  // Pins existing host memory until the result is destroyed.
  virtual StatusOr<DeviceBytes> Pin(std::byte* host, int64_t bytes) = 0;
  // The host does not know its use: everything is free.
  virtual StatusOr<DeviceMemoryUse> MemoryUse() = 0;

  // Queued: the host's memory must not change until the queue has passed the copy.
  virtual Status CopyIn(void* to_device, const void* from_host, int64_t bytes) = 0;
  virtual Status CopyOut(void* to_host, const void* from_device, int64_t bytes) = 0;
  // Queued, within the device. The ranges must not overlap.
  virtual Status Copy(void* to, const void* from, int64_t bytes) = 0;
  virtual Status Copy(const CopiedRows& rows) = 0;
  virtual Status Zero(void* memory, int64_t bytes) = 0;

  virtual Status Synchronize() = 0;  // waits until the queues are empty
  virtual StatusOr<std::unique_ptr<DeviceEvent>> MakeEvent() = 0;

  // Between the two, work is recorded instead of done: the work of the first queue, and of
  // transfers that wait for it and that it waits for in between. Nothing may wait for the queues
  // meanwhile.
  virtual Status BeginRecording() = 0;
  virtual StatusOr<std::unique_ptr<RecordedWork>> EndRecording() = 0;

  // Memory of this device, readable by the host now: the memory itself on the host, else a copy in
  // `scratch`.
  StatusOr<const std::byte*> Read(const std::byte* memory, int64_t bytes,
                                  std::vector<std::byte>* scratch);
  // Writes from host memory, which may change right afterwards.
  Status Write(void* to_device, const void* from_host, int64_t bytes);
};

Device& CpuDevice();

}  // namespace zg
