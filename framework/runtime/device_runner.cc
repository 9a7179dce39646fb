#include "framework/runtime/device_runner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "framework/base/check.h"
#include "framework/runtime/non_finite_report.h"

namespace zg {

Status DeviceRunner::Check(const Communicator& communicator, const RunnerOptions& options) {
  if (options.detect_anomaly) {
    return InvalidArgument(
        "`detect_anomaly` looks at what every node computes while it runs, which only the host "
        "can; run it with `device=cpu`");
  }
  if (options.profiler != nullptr) {
    return InvalidArgument(
        "`profile` and `trace` measure every node while it runs, which a device's queue does not "
        "tell; run it with `device=cpu`");
  }
  if (options.gradient_histograms != nullptr) {
    return InvalidArgument(
        "`metrics_histograms` are counted on the host while the step runs; run it with "
        "`device=cpu`");
  }
  if (!options.record || communicator.queues_on_device()) return Status::Ok();
  return InvalidArgument(
      "its programs cannot be recorded (`record`): the collectives go through the host");
}

// Queued work uses memory that is about to be freed.
DeviceRunner::~DeviceRunner() {
  if (leaves_work_) static_cast<void>(device_.Synchronize());
}

Status DeviceRunner::Prepare(BoundProgram* program, MemoryMeter* meter) {
  program_ = program;
  meter_ = meter;
  for (const Instruction& instruction : program->update.instructions) {
    if (instruction.kind() == ir::OpKind::kOutput && instruction.slot >= 0) {
      last_output_ = &instruction;
    }
  }
  recordings_.resize(program->Lists().size());
  return ExchangeStatus(communicator_, "prepare the device", Allocate());
}

Status DeviceRunner::Allocate() {
  for (const OutputSlot& slot : program_->outputs) {
    if (!records_ || slot.result.num_parts == 1) continue;
    return InvalidArgument(
        "its programs cannot be recorded (`record`): \"{}\" has a result for each of {} "
        "micro-batches of a rank, and a recording has one place for it",
        slot.name, slot.result.num_parts);
  }
  std::vector<int64_t> input_bytes;
  for (const InputSlot& slot : program_->inputs) input_bytes.push_back(slot.bytes);
  ZG_ASSIGN_OR_RETURN(
      inputs_, DeviceInputs::Create(&communicator_, input_bytes, program_->update_numbers.size()));
  for (const OutputSlot& slot : program_->outputs) {
    ZG_ASSIGN_OR_RETURN(DeviceBytes pinned, device_.AllocatePinned(slot.data.size()));
    pinned_outputs_.push_back(std::move(pinned));
  }
  ZG_ASSIGN_OR_RETURN(fault_, device_.Allocate(sizeof(DeviceFault)));
  ZG_ASSIGN_OR_RETURN(pinned_fault_, device_.AllocatePinned(sizeof(DeviceFault)));
  ZG_ASSIGN_OR_RETURN(outputs_are_done_, device_.MakeEvent());
  if (program_->num_starts > 0) ZG_RETURN_IF_ERROR(MakeEventsOfTransfers());
  return device_.Synchronize();
}

Status DeviceRunner::MakeEventsOfTransfers() {
  ZG_ASSIGN_OR_RETURN(computed_, device_.MakeEvent());
  transferred_.resize(program_->num_nodes);
  is_on_its_way_.resize(program_->num_nodes);
  for (const InstructionList* list : program_->Lists()) {
    for (const Instruction& instruction : list->instructions) {
      if (!ir::MovesData(*instruction.node)) continue;
      ZG_ASSIGN_OR_RETURN(transferred_[instruction.index], device_.MakeEvent());
    }
  }
  return Status::Ok();
}

Status DeviceRunner::Run(InstructionList& list, const StepContext& context) {
  const Status begun = inputs_->Begin(context, program_->update_numbers);
  if (!begun.ok()) {
    return begun.WithContext(fmt::format("step {}", context.step));
  }
  ZG_RETURN_IF_ERROR(FillInputs(list));
  if (&list == &program_->update) leaves_work_ = MayLeaveWork(context);
  const int variant = context.first_micro_step ? 1 : 0;
  Recordings& recordings = recordings_[list.index];
  Recorded& recorded = recordings.recorded[inputs_->set()][variant];
  // The first run loads kernels and connects ranks, which cannot be recorded.
  if (!records_ || !recordings.has_run[variant]) {
    ZG_RETURN_IF_ERROR(QueueList(list, context));
    recordings.has_run[variant] = true;
  } else {
    if (recorded.work == nullptr) ZG_RETURN_IF_ERROR(Record(list, context, &recorded));
    ZG_RETURN_IF_ERROR(recorded.work->Replay());
    communicator_.traffic_meter().Add(recorded.traffic);
  }
  return inputs_->End();
}

// Updates fail only if they are told to check themselves, and collectives only with other ranks. A
// recording has no event of its own to wait for.
bool DeviceRunner::MayLeaveWork(const StepContext& context) const {
  return last_output_ != nullptr && !records_ && communicator_.size() == 1 &&
         !context.stop_on_non_finite;
}

Status DeviceRunner::FillInputs(const InstructionList& list) {
  for (const Instruction& instruction : list.instructions) {
    if (instruction.kind() != ir::OpKind::kInput || !instruction.is_active) continue;
    const InputSlot& slot = program_->inputs[instruction.slot];
    if (slot.data == nullptr) return InvalidArgument("input \"{}\" was not set", slot.name);
    inputs_->Fill(instruction.slot, slot.data);
  }
  return Status::Ok();
}

Status DeviceRunner::Record(InstructionList& list, const StepContext& context, Recorded* recorded) {
  const TrafficCounters before = communicator_.traffic();
  ZG_RETURN_IF_ERROR(device_.BeginRecording());
  is_recording_ = true;
  const Status status = QueueList(list, context);
  is_recording_ = false;
  StatusOr<std::unique_ptr<RecordedWork>> work = device_.EndRecording();
  ZG_RETURN_IF_ERROR(status);
  ZG_RETURN_IF_ERROR(work.status());
  recorded->work = std::move(*work);
  recorded->traffic = communicator_.traffic_meter().TakeBack(before);
  return Status::Ok();
}

Status DeviceRunner::QueueList(InstructionList& list, const StepContext& context) {
  ZG_RETURN_IF_ERROR(inputs_->QueueContexts());
  for (Instruction& instruction : list.instructions) {
    if (!instruction.is_active) continue;
    if (!is_recording_) {
      if (const Status ready = queue_limit_.BeforeInstruction(); !ready.ok()) {
        return ready.WithContext(fmt::format("step {}", context.step));
      }
    }
    const Status status = QueueOne(instruction, context);
    if (!status.ok()) return status.WithContext(StepAndNode(instruction, context.step));
    if (meter_ != nullptr) Touch(instruction, meter_);
    if (leaves_work_ && &instruction == last_output_) ZG_RETURN_IF_ERROR(QueueEndOfOutputs());
  }
  // A recording must be self-contained.
  return records_ ? JoinTransfers() : Status::Ok();
}

Status DeviceRunner::JoinTransfers() {
  const auto first = std::find(is_on_its_way_.begin(), is_on_its_way_.end(), true);
  if (first == is_on_its_way_.end()) return Status::Ok();
  std::fill(first, is_on_its_way_.end(), false);
  return device_.JoinQueues();
}

Status DeviceRunner::QueueOne(Instruction& instruction, const StepContext& context) {
  if (computed_ != nullptr && ir::MovesData(*instruction.node)) {
    return QueueTransfer(instruction, context);
  }
  if (instruction.kernel != nullptr) return QueueKernel(instruction, context);
  switch (instruction.kind()) {
    case ir::OpKind::kWait:
      return QueueWait(instruction);
    case ir::OpKind::kInput:
      return inputs_->QueueInput(instruction.slot, instruction.outputs[0]);
    case ir::OpKind::kOutput: {
      if (instruction.slot < 0) return Status::Ok();  // an eval result, which stays in the arena
      const int64_t offset = program_->outputs[instruction.slot].OffsetOf(program_->memory.graph(),
                                                                          context.micro_batch);
      return device_.CopyOut(pinned_outputs_[instruction.slot].get() + offset,
                             instruction.inputs[0], instruction.operands[0].bytes());
    }
    default:  // an assignment
      return device_.Copy(const_cast<void*>(instruction.inputs[0]), instruction.inputs[1],
                          instruction.operands[0].bytes());
  }
}

Status DeviceRunner::QueueKernel(Instruction& instruction, const StepContext& context) {
  KernelArguments arguments = instruction.Arguments(&context);
  arguments.stream = device_.stream();
  arguments.device_step = inputs_->device_context(instruction.group);
  arguments.fault = reinterpret_cast<DeviceFault*>(fault_.get());
  arguments.node = instruction.index;
  return instruction.kernel->Run(arguments);
}

Status DeviceRunner::QueueTransfer(Instruction& instruction, const StepContext& context) {
  DeviceEvent& transferred = *transferred_[instruction.index];
  ZG_RETURN_IF_ERROR(computed_->Record());
  ZG_RETURN_IF_ERROR(device_.UseQueue(DeviceQueue::kTransfers));
  if (!is_recording_) ZG_RETURN_IF_ERROR(transfers_limit_.BeforeInstruction());
  ZG_RETURN_IF_ERROR(computed_->QueueWait());
  ZG_RETURN_IF_ERROR(QueueKernel(instruction, context));
  ZG_RETURN_IF_ERROR(transferred.Record());
  ZG_RETURN_IF_ERROR(device_.UseQueue(DeviceQueue::kWork));
  is_on_its_way_[instruction.index] = true;
  return ir::IsStart(*instruction.node) ? Status::Ok() : transferred.QueueWait();
}

Status DeviceRunner::QueueWait(const Instruction& wait) {
  for (const int start : wait.starts) {
    if (is_on_its_way_[start]) ZG_RETURN_IF_ERROR(transferred_[start]->QueueWait());
  }
  return Status::Ok();
}

Status DeviceRunner::QueueEndOfOutputs() {
  ZG_RETURN_IF_ERROR(device_.CopyOut(pinned_fault_.get(), fault_.get(), sizeof(DeviceFault)));
  return outputs_are_done_->Record();
}

Status DeviceRunner::Finish(const StepContext& context) {
  last_step_ = context.step;
  if (!leaves_work_) ZG_RETURN_IF_ERROR(QueueEndOfOutputs());
  const Status done =
      leaves_work_ ? communicator_.WaitFor(*outputs_are_done_) : communicator_.Synchronize();
  if (!done.ok()) return done.WithContext(fmt::format("step {}", context.step));
  ZG_RETURN_IF_ERROR(CheckFault(context.step));
  for (size_t i = 0; i < program_->outputs.size(); ++i) {
    OutputSlot& slot = program_->outputs[i];
    std::memcpy(slot.data.data(), pinned_outputs_[i].get(), slot.data.size());
    if (!context.stop_on_non_finite || !slot.must_be_finite) continue;
    if (const Status finite = CheckFiniteOutput(slot, nullptr); !finite.ok()) {
      return finite.WithContext(fmt::format("step {}", context.step));
    }
  }
  return Status::Ok();
}

Status DeviceRunner::Settle() {
  if (!leaves_work_) return Status::Ok();
  leaves_work_ = false;
  ZG_RETURN_IF_ERROR(QueueEndOfOutputs());
  if (const Status done = communicator_.Synchronize(); !done.ok()) {
    return done.WithContext(fmt::format("step {}", last_step_));
  }
  return CheckFault(last_step_);
}

Status DeviceRunner::CheckFault(int64_t step) const {
  DeviceFault fault;
  std::memcpy(&fault, pinned_fault_.get(), sizeof(fault));
  return fault.happened == 0 ? Status::Ok() : FaultStatus(fault, step);
}

Status DeviceRunner::FaultStatus(const DeviceFault& fault, int64_t step) const {
  for (const InstructionList* list : program_->Lists()) {
    for (const Instruction& instruction : list->instructions) {
      if (instruction.index != fault.node) continue;
      return InvalidArgument("{}", instruction.kernel->FaultText(fault))
          .WithContext(StepAndNode(instruction, step));
    }
  }
  ZG_CHECK(false, "the device reports a fault of instruction {}, which does not exist", fault.node);
}

}  // namespace zg
