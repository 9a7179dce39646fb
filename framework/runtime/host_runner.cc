#include "framework/runtime/host_runner.h"

#include <cstring>
#include <optional>

#include "framework/runtime/anomaly.h"
#include "framework/runtime/non_finite_report.h"

namespace zg {

Status HostRunner::Check(const RunnerOptions& options) {
  if (!options.record) return Status::Ok();
  return InvalidArgument("its programs cannot be recorded (`record`): the host has no queue");
}

Status HostRunner::Prepare(BoundProgram* program, MemoryMeter* meter) {
  program_ = program;
  meter_ = meter;
  if (program->num_starts == 0) return Status::Ok();
  tickets_.resize(program->num_nodes);
  queue_ = std::make_unique<CommunicationQueue>(program->num_starts + 1, options_.profiler);
  communicator_.set_only_waits(false);
  return Status::Ok();
}

Status HostRunner::Run(InstructionList& list, const StepContext& context) {
  const bool counts_gradients =
      options_.gradient_histograms != nullptr && options_.gradient_histograms->IsDue(context.step);
  const bool is_watched =
      options_.detect_anomaly || options_.profiler != nullptr || counts_gradients;
  for (Instruction& instruction : list.instructions) {
    if (!instruction.is_active) continue;
    const Status status =
        is_watched ? RunWatched(instruction, context) : RunOne(instruction, context);
    if (!status.ok()) {
      // Errors from the queue name their own step and node, which may belong to the previous step.
      const bool is_of_queue = instruction.kind() == ir::OpKind::kWait || IsForQueue(instruction);
      return is_of_queue ? status : status.WithContext(StepAndNode(instruction, context.step));
    }
    if (meter_ != nullptr) Touch(instruction, meter_);
  }
  return Status::Ok();
}

Status HostRunner::Finish(const StepContext& /*context*/) { return Status::Ok(); }

Status HostRunner::Settle() {
  return queue_ == nullptr ? Status::Ok() : WaitFor(queue_->last_ticket());
}

Status HostRunner::RunWatched(Instruction& instruction, const StepContext& context) {
  const RankMemory& memory = program_->memory;
  std::optional<NodeAnomalies> anomalies;
  // Checked before the node runs, because outputs may overwrite inputs.
  if (options_.detect_anomaly) {
    anomalies.emplace(memory.graph(), *instruction.node, instruction.inputs);
  }
  GradientHistograms* const histograms = options_.gradient_histograms;
  if (histograms != nullptr && histograms->IsDue(context.step)) {
    histograms->Observe(memory, instruction);
  }
  ZG_RETURN_IF_ERROR(options_.profiler != nullptr ? RunProfiled(instruction, context)
                                                  : RunOne(instruction, context));
  if (!anomalies) return Status::Ok();
  return anomalies->CheckOutputs(instruction.outputs, context, memory.rank());
}

Status HostRunner::RunProfiled(Instruction& instruction, const StepContext& context) {
  Profiler& profiler = *options_.profiler;
  const ir::Node& node = *instruction.node;
  // The queue reports its transfers itself.
  const bool transfers =
      ir::MovesData(node) && queue_ == nullptr && node.section->kind != ir::SectionKind::kEval;
  // As if the rank computed beside it: looks in vain are no processor time that a transfer needs.
  if (transfers) communicator_.set_only_waits(false);
  const auto transfer = transfers ? profiler.BeginTransfer() : Profiler::TransferBegin();
  const int64_t begin = profiler.Now();
  ZG_RETURN_IF_ERROR(RunOne(instruction, context));
  profiler.EndNode(instruction.index, begin);
  if (transfers) {
    profiler.EndTransfer(node, context.step, transfer);
    communicator_.set_only_waits(true);
  }
  return Status::Ok();
}

Status HostRunner::RunOne(Instruction& instruction, const StepContext& context) {
  if (IsForQueue(instruction)) return Communicate(instruction, context);
  if (instruction.kernel != nullptr) return RunKernel(instruction, context);
  switch (instruction.kind()) {
    case ir::OpKind::kInput: {
      const InputSlot& slot = program_->inputs[instruction.slot];
      if (slot.data == nullptr) return InvalidArgument("input \"{}\" was not set", slot.name);
      std::memcpy(instruction.outputs[0], slot.data, slot.bytes);
      return Status::Ok();
    }
    case ir::OpKind::kOutput:
      return TakeOutput(instruction, context);
    case ir::OpKind::kWait:
      return Wait(instruction);
    default:  // an assignment
      std::memcpy(const_cast<void*>(instruction.inputs[0]), instruction.inputs[1],
                  instruction.operands[0].bytes());
      return Status::Ok();
  }
}

Status HostRunner::Communicate(const Instruction& instruction, const StepContext& context) {
  int64_t& ticket = tickets_[instruction.index];
  ticket = queue_->Start(&instruction, context);
  // Its result is checked as soon as it has returned.
  const bool waits = !ir::IsStart(*instruction.node) || options_.detect_anomaly;
  return waits ? WaitFor(ticket) : Status::Ok();
}

Status HostRunner::Wait(const Instruction& wait) {
  for (const int start : wait.starts) ZG_RETURN_IF_ERROR(WaitFor(tickets_[start]));
  return Status::Ok();
}

Status HostRunner::WaitFor(int64_t ticket) {
  communicator_.set_only_waits(true);
  const Status status = queue_->Wait(ticket);
  communicator_.set_only_waits(false);
  return status;
}

Status HostRunner::RunKernel(Instruction& instruction, const StepContext& context) {
  StepContext own = context;
  if (instruction.group >= 0) own.step = program_->update_numbers[instruction.group];
  KernelArguments arguments = instruction.Arguments(&own);
  arguments.threads = &threads_;
  const Status status = instruction.kernel->Run(arguments);
  if (status.ok() || instruction.kind() != ir::OpKind::kUpdate) return status;
  return Status(status.code(),
                status.message() + BlamedUpdate(program_->memory, instruction) + kNonFiniteHint);
}

Status HostRunner::TakeOutput(const Instruction& instruction, const StepContext& context) {
  if (instruction.slot < 0) return Status::Ok();  // an eval result, which stays in the arena
  OutputSlot& slot = program_->outputs[instruction.slot];
  const int64_t offset = slot.OffsetOf(program_->memory.graph(), context.micro_batch);
  std::memcpy(slot.data.data() + offset, instruction.inputs[0], slot.result.type.bytes());
  if (!context.stop_on_non_finite || !slot.must_be_finite) return Status::Ok();
  return CheckFiniteOutput(slot,
                           [this] { return BlamedGradient(program_->memory, program_->update); });
}

}  // namespace zg
