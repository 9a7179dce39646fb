#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "framework/device/device.h"

namespace zg {
namespace {

class DoneEvent : public DeviceEvent {
 public:
  Status Record() override { return Status::Ok(); }
  StatusOr<bool> IsDone() override { return true; }
  Status Wait() override { return Status::Ok(); }
  Status QueueWait() override { return Status::Ok(); }
};

class HostDevice : public Device {
 public:
  std::string name() const override { return "cpu"; }
  void* stream() const override { return nullptr; }
  Status UseQueue(DeviceQueue /*queue*/) override { return Status::Ok(); }
  Status JoinQueues() override { return Status::Ok(); }

  StatusOr<DeviceBytes> Allocate(int64_t bytes) override { return AllocatePinned(bytes); }
  StatusOr<DeviceBytes> AllocatePinned(int64_t bytes) override {
    const int64_t mapped_bytes = std::max<int64_t>(bytes, 1);
    void* const data =
        mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
      return FailedPrecondition("cannot allocate {} bytes of memory: {}", bytes,
                                std::strerror(errno));
    }
    return DeviceBytes(static_cast<std::byte*>(data),
                       [mapped_bytes](std::byte* memory) { munmap(memory, mapped_bytes); });
  }
  StatusOr<DeviceBytes> Pin(std::byte* host, int64_t /*bytes*/) override {
    return DeviceBytes(host, [](std::byte*) {});
  }
  StatusOr<DeviceMemoryUse> MemoryUse() override {
    return DeviceMemoryUse{std::numeric_limits<int64_t>::max(), 0};
  }

  Status CopyIn(void* to_device, const void* from_host, int64_t bytes) override {
    return Copy(to_device, from_host, bytes);
  }
  Status CopyOut(void* to_host, const void* from_device, int64_t bytes) override {
    return Copy(to_host, from_device, bytes);
  }
  Status Copy(void* to, const void* from, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return Status::Ok();
  }
  Status Copy(const CopiedRows& rows) override {
    for (int64_t i = 0; i < rows.count; ++i) {
      std::memcpy(rows.to + i * rows.to_stride, rows.from + i * rows.from_stride, rows.bytes);
    }
    return Status::Ok();
  }
  Status Zero(void* memory, int64_t bytes) override {
    if (bytes > 0) std::memset(memory, 0, bytes);
    return Status::Ok();
  }

  Status Synchronize() override { return Status::Ok(); }
  StatusOr<std::unique_ptr<DeviceEvent>> MakeEvent() override {
    return std::unique_ptr<DeviceEvent>(new DoneEvent());
  }
  Status BeginRecording() override {
    return FailedPrecondition("cpu: it has no queue that could be recorded");
  }
  StatusOr<std::unique_ptr<RecordedWork>> EndRecording() override { return BeginRecording(); }
};

}  // namespace

Device& CpuDevice() {
  static HostDevice device;
  return device;
}

}  // namespace zg
