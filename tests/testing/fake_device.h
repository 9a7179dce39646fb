// FakeDevice: a device on a machine without one, to compare work on it with the CPU's bits. It is
// as unlike the host as a device can be:
// - the host cannot access its addresses: touching one is a crash;
// - queued work is done only when somebody waits for it;
// - its kernels (the CPU's, FakeDeviceKernels) see the step's context only where it was copied to.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "framework/device/device.h"
#include "framework/kernels/kernel.h"

namespace zg::testing {

class FakeDevice : public Device {
 public:
  struct Counters {
    int64_t copies_in = 0;
    int64_t copies_out = 0;
    int64_t kernels = 0;
    int64_t waits = 0;
    int64_t recordings = 0;
    int64_t replays = 0;
  };
  const Counters& counters() const { return counters_; }
  bool has_work() const { return num_done_ < num_queued_; }  // work that nobody has waited for

  std::string name() const override { return "fake"; }
  void* stream() const override { return const_cast<FakeDevice*>(this); }
  Status UseQueue(DeviceQueue queue) override {
    if (queue == DeviceQueue::kWork) return Status::Ok();
    return FailedPrecondition("fake: it has one queue");
  }
  Status JoinQueues() override { return Status::Ok(); }
  StatusOr<DeviceBytes> Allocate(int64_t bytes) override;
  StatusOr<DeviceBytes> AllocatePinned(int64_t bytes) override;
  StatusOr<DeviceBytes> Pin(std::byte* host, int64_t bytes) override;
  StatusOr<DeviceMemoryUse> MemoryUse() override { return use_; }
  // The result of MemoryUse; allocations are limited to its free bytes.
  void set_memory_use(const DeviceMemoryUse& use) { use_ = use; }
  Status CopyIn(void* to_device, const void* from_host, int64_t bytes) override;
  Status CopyOut(void* to_host, const void* from_device, int64_t bytes) override;
  Status Copy(void* to, const void* from, int64_t bytes) override;
  Status Copy(const CopiedRows& rows) override;
  Status Zero(void* memory, int64_t bytes) override;
  Status Synchronize() override;
  StatusOr<std::unique_ptr<DeviceEvent>> MakeEvent() override;
  Status BeginRecording() override;
  StatusOr<std::unique_ptr<RecordedWork>> EndRecording() override;

  using Work = std::function<void()>;
  Status QueueKernel(Work work);
  // The host memory behind a device address.
  std::byte* Behind(const void* address) const;

 private:
  class Event;
  class Recording;

  struct Block {
    std::byte* address = nullptr;  // on the device
    int64_t bytes = 0;
    std::byte* behind = nullptr;
  };

  Status Queue(Work work);
  Status WaitUntil(int64_t num_done);

  std::vector<Block> blocks_;
  std::vector<Work> queue_;
  size_t next_ = 0;       // of the queue
  int64_t num_done_ = 0;  // of all work ever queued
  int64_t num_queued_ = 0;
  bool is_recording_ = false;
  std::vector<Work> recording_;
  DeviceMemoryUse use_ = {std::numeric_limits<int64_t>::max(), 0};
  Counters counters_;
};

// The CPU's kernels, adapted to fake devices.
const KernelRegistry& FakeDeviceKernels();

}  // namespace zg::testing
