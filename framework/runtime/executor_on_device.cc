// Programs on a device: everything is queued, and the host waits once, at the end.

#include <cstring>

#include "framework/base/check.h"
#include "framework/runtime/executor.h"

namespace zg {

// What a device needs besides the arena.
Status Executor::PrepareDevice() {
  std::vector<int64_t> input_bytes;
  for (const InputSlot& slot : inputs_) input_bytes.push_back(slot.bytes);
  ZG_ASSIGN_OR_RETURN(device_inputs_, DeviceInputs::Create(communicator_, input_bytes));
  queue_limit_ = std::make_unique<QueueLimit>(communicator_);
  for (OutputSlot& slot : outputs_) {
    ZG_ASSIGN_OR_RETURN(slot.pinned, device_.AllocatePinned(slot.data.size()));
  }
  ZG_ASSIGN_OR_RETURN(fault_, device_.Allocate(sizeof(DeviceFault)));
  ZG_ASSIGN_OR_RETURN(pinned_fault_, device_.AllocatePinned(sizeof(DeviceFault)));
  return device_.Synchronize();
}

Status Executor::RunOnDevice(Program& program, const StepContext& context) {
  ZG_RETURN_IF_ERROR(
      device_inputs_->Begin(context).WithContext(fmt::format("step {}", context.step)));
  for (const Instruction& instruction : program.instructions) {
    if (!instruction.is_input()) continue;
    const InputSlot& slot = inputs_[instruction.slot];
    if (slot.data == nullptr) return InvalidArgument("input \"{}\" was not set", slot.name);
    device_inputs_->Fill(instruction.slot, slot.data);
  }
  const auto queue = [&]() -> Status {
    ZG_RETURN_IF_ERROR(device_inputs_->QueueContext());
    return RunInstructions(program, context);
  };
  const int variant = context.first_micro_step ? 1 : 0;
  Recorded& recorded = program.recorded[device_inputs_->set()][variant];
  // The first run loads kernels and connects ranks, which cannot be recorded.
  if (!options_.record || !program.has_run[variant]) {
    ZG_RETURN_IF_ERROR(queue());
    program.has_run[variant] = true;
  } else {
    if (recorded.work == nullptr) {
      const TrafficCounters before = communicator_->traffic();
      ZG_RETURN_IF_ERROR(device_.BeginRecording());
      is_recording_ = true;
      const Status status = queue();
      is_recording_ = false;
      StatusOr<std::unique_ptr<RecordedWork>> work = device_.EndRecording();
      ZG_RETURN_IF_ERROR(status);
      ZG_RETURN_IF_ERROR(work.status());
      recorded.work = std::move(*work);
      recorded.traffic = communicator_->traffic_meter().TakeBack(before);
    }
    ZG_RETURN_IF_ERROR(recorded.work->Replay());
    communicator_->traffic_meter().Add(recorded.traffic);
  }
  return device_inputs_->End();
}

Status Executor::Finish(std::string_view eval, const StepContext& context) {
  if (device_.is_host()) return Status::Ok();
  ZG_RETURN_IF_ERROR(device_.CopyOut(pinned_fault_.get(), fault_.get(), sizeof(DeviceFault)));
  ZG_RETURN_IF_ERROR(
      communicator_->Synchronize().WithContext(fmt::format("step {}", context.step)));
  DeviceFault fault;
  std::memcpy(&fault, pinned_fault_.get(), sizeof(fault));
  if (fault.happened != 0) return FaultStatus(fault, context.step);
  for (OutputSlot& slot : outputs_) {
    if (slot.eval != eval) continue;
    std::memcpy(slot.data.data(), slot.pinned.get(), slot.data.size());
    ZG_RETURN_IF_ERROR(
        CheckOutput(slot, context).WithContext(fmt::format("step {}", context.step)));
  }
  return Status::Ok();
}

Status Executor::FaultStatus(const DeviceFault& fault, int64_t step) const {
  std::vector<const Program*> programs = {&micro_batch_, &update_};
  for (const auto& [name, program] : evals_) programs.push_back(&program);
  for (const Program* program : programs) {
    for (const Instruction& instruction : program->instructions) {
      if (instruction.index != fault.node) continue;
      return InvalidArgument("{}", instruction.kernel->FaultText(fault))
          .WithContext(fmt::format("step {}, {}", step, NameOf(*instruction.node)));
    }
  }
  ZG_CHECK(false, "a fault of instruction {}, which there is not", fault.node);
}

}  // namespace zg
