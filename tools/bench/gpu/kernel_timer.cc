#include "tools/bench/gpu/kernel_timer.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace zg::bench {
namespace {

constexpr int64_t kPatternBytes = int64_t{4} << 20;
constexpr double kMinSeconds = 0.05;  // minimum time of one measurement
constexpr int kRounds = 5;

using Work = std::function<Status()>;

StatusOr<double> SecondsOf(Device& device, const Work& work, int times) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) ZG_RETURN_IF_ERROR(work());
  ZG_RETURN_IF_ERROR(device.Synchronize());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Random contents for an operand, to be written repeatedly. Zeros would not do, because multiplying
// them takes less power and so allows a higher clock.
std::vector<std::byte> Pattern(const TensorType& type, int64_t max_id, bool positive) {
  std::mt19937_64 random(1);
  std::vector<std::byte> pattern(std::min(kPatternBytes, type.bytes()));
  const int64_t size = SizeOf(type.dtype);
  for (int64_t at = 0; at < static_cast<int64_t>(pattern.size()); at += size) {
    if (type.dtype == DType::kI64) {
      const int64_t id = static_cast<int64_t>(random() % max_id);
      std::memcpy(&pattern[at], &id, size);
      continue;
    }
    const float unit = static_cast<float>(random() >> 40) * 0x1p-24f;
    const float value = positive ? unit : 2 * unit - 1;
    const int64_t skipped = sizeof(value) - size;  // bf16 is the upper half of an f32
    std::memcpy(&pattern[at], reinterpret_cast<const std::byte*>(&value) + skipped, size);
  }
  return pattern;
}

// A kernel with enough sets of operands to exceed every cache.
class Bench {
 public:
  Bench(const Place& place, const KernelCase& test)
      : device_(*place.device),
        kernels_(*place.kernels),
        cold_bytes_(place.cold_bytes),
        test_(test) {}

  StatusOr<double> MedianSecondsPerCall() {
    ZG_RETURN_IF_ERROR(Prepare());
    ZG_ASSIGN_OR_RETURN(const double seconds, MedianSeconds(device_, [this] { return RunAll(); }));
    ZG_RETURN_IF_ERROR(CheckFault());
    return seconds / static_cast<double>(sets_.size());
  }

 private:
  struct Operands {
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
  };

  Status Prepare() {
    ZG_ASSIGN_OR_RETURN(kernel_, kernels_.Make(test_.spec));
    ZG_ASSIGN_OR_RETURN(workspace_, device_.Allocate(kernel_->workspace_bytes()));
    ZG_ASSIGN_OR_RETURN(device_step_, device_.Allocate(sizeof(step_)));
    ZG_RETURN_IF_ERROR(device_.Write(device_step_.get(), &step_, sizeof(step_)));
    ZG_ASSIGN_OR_RETURN(fault_, device_.Allocate(sizeof(DeviceFault)));
    for (const TensorType& type : test_.spec.call.inputs) {
      patterns_.push_back(
          Pattern(type, test_.max_id, test_.spec.call.op->traits.kind == ir::OpKind::kUpdate));
    }
    const int64_t num_sets = std::max<int64_t>(1, cold_bytes_ / test_.moved_bytes);
    for (int64_t i = 0; i < num_sets; ++i) ZG_RETURN_IF_ERROR(AddOperands());
    return Status::Ok();
  }

  StatusOr<std::byte*> AllocateOperand(const TensorType& type) {
    ZG_ASSIGN_OR_RETURN(DeviceBytes memory, device_.Allocate(type.bytes()));
    memory_.push_back(std::move(memory));
    return memory_.back().get();
  }

  Status AddOperands() {
    const ir::OpCall& call = test_.spec.call;
    Operands set;
    for (const TensorType& type : call.inputs) {
      ZG_ASSIGN_OR_RETURN(std::byte* const data, AllocateOperand(type));
      const std::vector<std::byte>& pattern = patterns_[set.inputs.size()];
      for (int64_t at = 0; at < type.bytes(); at += kPatternBytes) {
        const int64_t bytes = std::min(kPatternBytes, type.bytes() - at);
        ZG_RETURN_IF_ERROR(device_.Write(data + at, pattern.data(), bytes));
      }
      set.inputs.push_back(data);
    }
    for (const TensorType& type : test_.spec.outputs) {
      const int output = static_cast<int>(set.outputs.size());
      if (const void* inside = InputThatHolds(set, output)) {
        set.outputs.push_back(const_cast<void*>(inside));
        continue;
      }
      ZG_ASSIGN_OR_RETURN(std::byte* const data, AllocateOperand(type));
      set.outputs.push_back(data);
    }
    sets_.push_back(std::move(set));
    return Status::Ok();
  }

  // Updates write in place; null for other outputs.
  const void* InputThatHolds(const Operands& set, int output) const {
    const ir::OpCall& call = test_.spec.call;
    if (call.op->aliases == nullptr) return nullptr;
    for (const ir::AliasRule& rule : call.op->aliases(call)) {
      const bool is_inside = rule.kind == ir::AliasRule::Kind::kOutputInsideInput;
      if (is_inside && rule.output == output) return set.inputs[rule.input];
    }
    return nullptr;
  }

  Status RunAll() {
    for (const Operands& set : sets_) {
      KernelArguments arguments = {set.inputs.data(), set.outputs.data(), workspace_.get(), &step_};
      arguments.stream = device_.stream();
      if (!device_.is_host()) {
        arguments.device_step = reinterpret_cast<const StepContext*>(device_step_.get());
        arguments.fault = reinterpret_cast<DeviceFault*>(fault_.get());
      }
      ZG_RETURN_IF_ERROR(kernel_->Run(arguments));
    }
    return Status::Ok();
  }

  Status CheckFault() {
    DeviceFault fault;
    std::vector<std::byte> scratch;
    ZG_ASSIGN_OR_RETURN(const std::byte* data, device_.Read(fault_.get(), sizeof(fault), &scratch));
    std::memcpy(&fault, data, sizeof(fault));
    if (fault.happened == 0) return Status::Ok();
    return FailedPrecondition("{}: {}", test_.name, kernel_->FaultText(fault));
  }

  Device& device_;
  const KernelRegistry& kernels_;
  const int64_t cold_bytes_;
  const KernelCase& test_;
  const StepContext step_;
  std::unique_ptr<Kernel> kernel_;
  DeviceBytes workspace_;
  DeviceBytes device_step_;
  DeviceBytes fault_;
  std::vector<std::vector<std::byte>> patterns_;  // by input
  std::vector<DeviceBytes> memory_;
  std::vector<Operands> sets_;
};

}  // namespace

StatusOr<double> MedianSeconds(Device& device, const Work& work, bool records) {
  ZG_RETURN_IF_ERROR(work());  // loads code
  ZG_RETURN_IF_ERROR(device.Synchronize());
  std::unique_ptr<RecordedWork> recorded;
  if (records && !device.is_host()) {
    ZG_RETURN_IF_ERROR(device.BeginRecording());
    ZG_RETURN_IF_ERROR(work());
    ZG_ASSIGN_OR_RETURN(recorded, device.EndRecording());
  }
  const Work run = [&] { return recorded != nullptr ? recorded->Replay() : work(); };
  ZG_RETURN_IF_ERROR(SecondsOf(device, run, 1).status());
  ZG_ASSIGN_OR_RETURN(const double once, SecondsOf(device, run, 1));
  const int times = static_cast<int>(std::clamp(kMinSeconds / once, 1.0, 1000.0));
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round) {
    ZG_ASSIGN_OR_RETURN(const double all, SecondsOf(device, run, times));
    seconds.push_back(all / times);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[kRounds / 2];
}

StatusOr<double> MedianKernelSeconds(const Place& place, const KernelCase& test) {
  return Bench(place, test).MedianSecondsPerCall();
}

}  // namespace zg::bench
