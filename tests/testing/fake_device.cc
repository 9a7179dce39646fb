#include "tests/testing/fake_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "framework/base/check.h"
#include "framework/ir/op_registry.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/ops/register_all_ops.h"

namespace zg::testing {
namespace {

constexpr int64_t kPageBytes = 4096;

int64_t RoundUpToPage(int64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

std::byte* Map(int64_t bytes, int protection) {
  void* const data = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ZG_CHECK(data != MAP_FAILED, "cannot map {} bytes", bytes);
  return static_cast<std::byte*>(data);
}

class FakeDeviceKernel : public Kernel {
 public:
  FakeDeviceKernel(std::unique_ptr<Kernel> kernel, size_t num_inputs, size_t num_outputs)
      : kernel_(std::move(kernel)), num_inputs_(num_inputs), num_outputs_(num_outputs) {}

  int64_t workspace_bytes() const override { return kernel_->workspace_bytes(); }

  Status Run(const KernelArguments& arguments) override {
    auto* const device = static_cast<FakeDevice*>(arguments.stream);
    ZG_CHECK(device != nullptr, "a kernel of the device runs without its queue");
    return device->QueueKernel([this, device, on_device = arguments] {
      StepContext step;
      std::memcpy(&step, device->Behind(on_device.device_step), sizeof(step));
      KernelArguments behind = on_device;
      behind.step = &step;
      std::vector<const void*> inputs;
      std::vector<void*> outputs;
      for (size_t i = 0; i < num_inputs_; ++i) {
        inputs.push_back(device->Behind(on_device.inputs[i]));
      }
      for (size_t i = 0; i < num_outputs_; ++i) {
        outputs.push_back(device->Behind(on_device.outputs[i]));
      }
      behind.inputs = inputs.data();
      behind.outputs = outputs.data();
      if (on_device.workspace != nullptr) behind.workspace = device->Behind(on_device.workspace);
      const Status status = kernel_->Run(behind);
      auto* const fault = reinterpret_cast<DeviceFault*>(device->Behind(on_device.fault));
      if (status.ok() || fault->happened != 0) return;
      fault_text_ = status.message();
      fault->happened = 1;
      fault->node = on_device.node;
    });
  }

  std::string FaultText(const DeviceFault&) const override { return fault_text_; }

 private:
  const std::unique_ptr<Kernel> kernel_;
  const size_t num_inputs_;
  const size_t num_outputs_;
  std::string fault_text_;
};

StatusOr<std::unique_ptr<Kernel>> MakeFakeDeviceKernel(const KernelSpec& spec) {
  ZG_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, CpuKernels().Make(spec));
  return std::unique_ptr<Kernel>(std::make_unique<FakeDeviceKernel>(
      std::move(kernel), spec.call.inputs.size(), spec.outputs.size()));
}

}  // namespace

class FakeDevice::Event : public DeviceEvent {
 public:
  explicit Event(FakeDevice* device) : device_(*device) {}
  Status Record() override {
    after_ = device_.num_queued_;
    return Status::Ok();
  }
  StatusOr<bool> IsDone() override { return device_.num_done_ >= after_; }
  Status Wait() override { return device_.WaitUntil(after_); }
  Status QueueWait() override { return Status::Ok(); }  // there is one queue

 private:
  FakeDevice& device_;
  int64_t after_ = 0;
};

class FakeDevice::Recording : public RecordedWork {
 public:
  Recording(FakeDevice* device, std::vector<Work> work)
      : device_(*device), work_(std::move(work)) {}
  Status Replay() override {
    ++device_.counters_.replays;
    for (const Work& work : work_) ZG_RETURN_IF_ERROR(device_.Queue(work));
    return Status::Ok();
  }

 private:
  FakeDevice& device_;
  const std::vector<Work> work_;
};

StatusOr<DeviceBytes> FakeDevice::Allocate(int64_t bytes) {
  if (bytes > use_.free_bytes) return FailedPrecondition("fake: {} bytes do not fit", bytes);
  // One page more than needed, so that the address after the last byte belongs to nothing else.
  const int64_t mapped = RoundUpToPage(bytes) + kPageBytes;
  blocks_.push_back({Map(mapped, PROT_NONE), bytes, Map(mapped, PROT_READ | PROT_WRITE)});
  return DeviceBytes(blocks_.back().address, [this, mapped](std::byte* address) {
    const auto block = std::find_if(blocks_.begin(), blocks_.end(),
                                    [&](const Block& block) { return block.address == address; });
    munmap(block->address, mapped);
    munmap(block->behind, mapped);
    blocks_.erase(block);
  });
}

StatusOr<DeviceBytes> FakeDevice::AllocatePinned(int64_t bytes) {
  return CpuDevice().AllocatePinned(bytes);
}

StatusOr<DeviceBytes> FakeDevice::Pin(std::byte* host, int64_t bytes) {
  return CpuDevice().Pin(host, bytes);
}

std::byte* FakeDevice::Behind(const void* address) const {
  for (const Block& block : blocks_) {
    const int64_t offset = static_cast<const std::byte*>(address) - block.address;
    if (offset >= 0 && offset <= block.bytes) return block.behind + offset;
  }
  ZG_CHECK(false, "{} is no address of the device", address);
}

Status FakeDevice::CopyIn(void* to_device, const void* from_host, int64_t bytes) {
  ++counters_.copies_in;
  return Queue([this, to_device, from_host, bytes] {
    if (bytes > 0) std::memcpy(Behind(to_device), from_host, bytes);
  });
}

Status FakeDevice::CopyOut(void* to_host, const void* from_device, int64_t bytes) {
  ++counters_.copies_out;
  return Queue([this, to_host, from_device, bytes] {
    if (bytes > 0) std::memcpy(to_host, Behind(from_device), bytes);
  });
}

Status FakeDevice::Copy(void* to, const void* from, int64_t bytes) {
  return Queue([this, to, from, bytes] { std::memcpy(Behind(to), Behind(from), bytes); });
}

Status FakeDevice::Copy(const CopiedRows& rows) {
  return Queue([this, rows] {
    for (int64_t i = 0; i < rows.count; ++i) {
      std::memcpy(Behind(rows.to + i * rows.to_stride), Behind(rows.from + i * rows.from_stride),
                  rows.bytes);
    }
  });
}

Status FakeDevice::Zero(void* memory, int64_t bytes) {
  return Queue([this, memory, bytes] { std::memset(Behind(memory), 0, bytes); });
}

Status FakeDevice::QueueKernel(Work work) {
  ++counters_.kernels;
  return Queue(std::move(work));
}

Status FakeDevice::Queue(Work work) {
  if (is_recording_) {
    recording_.push_back(std::move(work));
    return Status::Ok();
  }
  queue_.push_back(std::move(work));
  ++num_queued_;
  return Status::Ok();
}

Status FakeDevice::WaitUntil(int64_t num_done) {
  if (is_recording_) return FailedPrecondition("fake: waiting while work is recorded");
  ++counters_.waits;
  while (num_done_ < num_done) {
    queue_[next_++]();
    ++num_done_;
  }
  if (next_ == queue_.size()) {
    queue_.clear();
    next_ = 0;
  }
  return Status::Ok();
}

Status FakeDevice::Synchronize() { return WaitUntil(num_queued_); }

StatusOr<std::unique_ptr<DeviceEvent>> FakeDevice::MakeEvent() {
  return std::unique_ptr<DeviceEvent>(new Event(this));
}

Status FakeDevice::BeginRecording() {
  if (is_recording_) return FailedPrecondition("fake: it is recording already");
  ++counters_.recordings;
  is_recording_ = true;
  return Status::Ok();
}

StatusOr<std::unique_ptr<RecordedWork>> FakeDevice::EndRecording() {
  if (!is_recording_) return FailedPrecondition("fake: it is not recording");
  is_recording_ = false;
  return std::unique_ptr<RecordedWork>(new Recording(this, std::exchange(recording_, {})));
}

const KernelRegistry& FakeDeviceKernels() {
  static const KernelRegistry* const registry = [] {
    RegisterAllOps();
    auto* kernels = new KernelRegistry;
    for (const ir::OpDef* op : ir::OpRegistry::Global().All()) {
      if (CpuKernels().Has(op->name)) kernels->Register(op->name, MakeFakeDeviceKernel);
    }
    return kernels;
  }();
  return *registry;
}

}  // namespace zg::testing
