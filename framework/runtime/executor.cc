#include "framework/runtime/executor.h"

#include <algorithm>

#include "framework/base/check.h"
#include "framework/base/format.h"
#include "framework/runtime/anomaly.h"
#include "framework/runtime/boxing/boxing_kernel.h"
#include "framework/runtime/check_same_program.h"
#include "framework/runtime/local_elements.h"
#include "framework/runtime/non_finite.h"
#include "framework/runtime/plan_program.h"

namespace zg {
namespace {

// What the executor cannot do with a graph on its mesh.
Status CheckMesh(const ir::Graph& graph) {
  const int num_data_ranks = graph.mesh().num_data_ranks();
  if (graph.micro_batches() % num_data_ranks != 0) {
    return InvalidArgument(
        "graph {}: got {} micro-batches per step, expected a multiple of the {} data ranks of "
        "mesh({})",
        graph.name(), graph.micro_batches(), num_data_ranks, graph.mesh().ToString());
  }
  for (const ir::StoredTensor& tensor : graph.tensors()) {
    for (const Sbp sbp : tensor.storage->sbp) {
      if (sbp.is_broadcast() || (sbp.is_split() && sbp.dim() == 0)) continue;
      return InvalidArgument(
          "graph {}: tensor \"{}\" is stored in %{} with placement {}, expected B or S(0) along "
          "each axis",
          graph.name(), tensor.name, tensor.storage->name, ToString(tensor.storage->sbp));
    }
  }
  return Status::Ok();
}

// "each rank: parameters 1.2 GB, gradients 600.0 MB, ...".
std::string MemoryPerRank(const MemoryPlan& plan) {
  std::string text = "each rank: ";
  for (int i = 0; i < kNumMemoryCategories; ++i) {
    text += fmt::format("{} {}, ", MemoryCategoryName(static_cast<MemoryCategory>(i)),
                        FormatBytes(plan.category_bytes[i]));
  }
  return text + fmt::format("together at most {}", FormatBytes(plan.arena_bytes));
}

}  // namespace

StatusOr<std::unique_ptr<Executor>> Executor::Create(const ir::Graph* graph,
                                                     const KernelRegistry& kernels,
                                                     Communicator* communicator,
                                                     ExecutorOptions options) {
  if (communicator->size() != graph->mesh().num_ranks()) {
    return FailedPrecondition("graph {}: it is compiled for {} ranks, the job has {}",
                              graph->name(), graph->mesh().num_ranks(), communicator->size());
  }
  ZG_RETURN_IF_ERROR(CheckSameProgram(*graph, options.seed, *communicator));
  ZG_RETURN_IF_ERROR(CheckMesh(*graph));
  std::unique_ptr<Executor> executor(new Executor(graph, communicator, options));
  executor->num_data_ranks_ = graph->mesh().num_data_ranks();
  executor->data_index_ = graph->mesh().DataIndex(communicator->rank());
  ZG_RETURN_IF_ERROR(executor->CheckOptions());
  ZG_ASSIGN_OR_RETURN(ProgramPlan program,
                      PlanProgram(*graph, kernels, communicator->arena().workspace_bytes()));
  executor->kernels_ = std::move(program.kernels);
  executor->plan_ = std::move(program.memory);
  executor->meter_ = std::make_unique<MemoryMeter>(executor->plan_.buffers);
  if (options.profile_clock != nullptr) executor->profiler_.emplace(options.profile_clock);
  ZG_RETURN_IF_ERROR(executor->Resolve());
  if (!executor->device_.is_host()) {
    ZG_RETURN_IF_ERROR(
        ExchangeStatus(*communicator, "prepare the device", executor->PrepareDevice()));
  }
  return executor;
}

std::string Executor::NameOf(const ir::Node& node) {
  return fmt::format("{}{}{}", node.op->name, node.scope.empty() ? "" : " of ", node.scope);
}

Status Executor::CheckOptions() const {
  if (options_.detect_anomaly && !device_.is_host()) {
    return InvalidArgument(
        "graph {}: --detect-anomaly looks at what every node computes while it runs, which only "
        "the host can; run it with --device cpu",
        graph_->name());
  }
  if (options_.profile_clock != nullptr && !device_.is_host()) {
    return InvalidArgument(
        "graph {}: --profile measures every node while it runs, which a device's queue does not "
        "tell; run it with --device cpu",
        graph_->name());
  }
  if (!options_.record || communicator_->can_be_recorded()) return Status::Ok();
  return InvalidArgument(
      "graph {}: its programs cannot be recorded (--cuda-graph): {}", graph_->name(),
      device_.is_host() ? "the host has no queue" : "the collectives go through the host");
}

Status Executor::Resolve() {
  const int workspace = plan_.communicator_workspace;
  const StatusOr<std::byte*> arena = communicator_->arena().Allocate(
      plan_.arena_bytes, workspace < 0 ? 0 : plan_.buffers[workspace].offset);
  if (arena.status().code() == StatusCode::kFailedPrecondition) {
    return Status(arena.status().code(), arena.status().message() + "\n  " + MemoryPerRank(plan_));
  }
  ZG_RETURN_IF_ERROR(arena.status());
  arena_ = *arena;
  int timeline = 0;
  int position = 0;
  for (const auto& section : graph_->sections()) {
    Program* program = &micro_batch_;
    if (section->kind == ir::SectionKind::kUpdate) program = &update_;
    if (section->kind == ir::SectionKind::kEval) {
      program = &evals_[section->name];
      ++timeline;
      position = 0;
    }
    if (section->kind == ir::SectionKind::kVariables) continue;
    for (const ir::Node* node : section->nodes) {
      ZG_RETURN_IF_ERROR(ResolveNode(*node, timeline, position++, program));
    }
  }
  return Status::Ok();
}

Status Executor::ResolveNode(const ir::Node& node, int timeline, int position, Program* program) {
  Instruction instruction;
  instruction.index = num_instructions_++;
  instruction.node = &node;
  instruction.timeline = timeline;
  instruction.position = position;
  if (profiler_) profiler_->AddNode(instruction.index, *graph_, node);
  for (const ir::Value* input : node.inputs) {
    instruction.operands.push_back(OperandOf(input));
    instruction.inputs.push_back(arena_ + instruction.operands.back().begin);
  }
  for (const ir::Value* output : node.outputs) {
    instruction.operands.push_back(OperandOf(output));
    instruction.outputs.push_back(arena_ + instruction.operands.back().begin);
  }
  if (node.op->traits.kind == ir::OpKind::kInput) {
    instruction.slot = static_cast<int>(inputs_.size());
    inputs_.push_back({node.section->name, node.attributes.String("name"),
                       graph_->LocalType(*node.outputs[0]).bytes(), nullptr});
  } else if (node.op->traits.kind == ir::OpKind::kOutput) {
    instruction.slot = static_cast<int>(outputs_.size());
    const TensorType& type = node.inputs[0]->type;
    outputs_.push_back({node.section->name, node.attributes.String("name"), type,
                        std::vector<std::byte>(type.bytes()), nullptr});
  } else if (node.op->traits.kind == ir::OpKind::kAssign) {
    if (instruction.inputs[0] == instruction.inputs[1]) return Status::Ok();  // produced in place
  } else if (IsBoxing(node)) {
    ZG_ASSIGN_OR_RETURN(instruction.kernel, MakeBoxingKernel(*graph_, node, plan_, communicator_));
    if (plan_.communicator_workspace >= 0) AddOperand(plan_.communicator_workspace, &instruction);
  } else {
    const auto kernel = kernels_.find(&node);
    if (kernel == kernels_.end()) return Status::Ok();  // a view
    instruction.kernel = std::move(kernel->second);
  }
  const auto workspace = plan_.workspaces.find(&node);
  if (workspace != plan_.workspaces.end()) {
    AddOperand(workspace->second, &instruction);
    instruction.workspace = arena_ + instruction.operands.back().begin;
  }
  program->instructions.push_back(std::move(instruction));
  return Status::Ok();
}

void Executor::AddOperand(int buffer, Instruction* instruction) const {
  const PlannedBuffer& planned = plan_.buffers[buffer];
  instruction->operands.push_back({buffer, planned.offset, planned.offset + planned.bytes});
}

Executor::Operand Executor::OperandOf(const ir::Value* value) const {
  const int64_t begin = plan_.OffsetOn(value, communicator_->rank());
  return {plan_.storage.Of(value).buffer, begin, begin + graph_->LocalType(*value).bytes()};
}

Status Executor::SetInput(std::string_view eval, std::string_view name, const void* data,
                          int64_t bytes) {
  for (InputSlot& slot : inputs_) {
    if (slot.eval != eval || slot.name != name) continue;
    if (slot.bytes != bytes) {
      return InvalidArgument("input \"{}\": got {} bytes, expected {}", name, bytes, slot.bytes);
    }
    slot.data = data;
    return Status::Ok();
  }
  return InvalidArgument("graph {}{}{}: it has no input \"{}\"", graph_->name(),
                         eval.empty() ? "" : ", eval ", eval, name);
}

Status Executor::RunStep(int64_t step, double lr_factor, const Feed& feed) {
  StepContext context;
  context.seed = options_.seed;
  context.step = step;
  context.lr_factor = lr_factor;
  context.stop_on_non_finite = options_.stop_on_non_finite;
  const int64_t micro_steps = graph_->micro_batches() / num_data_ranks_;
  if (profiler_) profiler_->BeginStep();
  for (int64_t j = 0; j < micro_steps; ++j) {
    const int64_t feed_begin = profiler_ ? profiler_->Now() : 0;
    ZG_RETURN_IF_ERROR(feed(j));
    if (profiler_) profiler_->EndFeed(feed_begin);
    context.micro_batch = j * num_data_ranks_ + data_index_;
    context.first_micro_step = j == 0;
    ZG_RETURN_IF_ERROR(Run(micro_batch_, context));
  }
  ZG_RETURN_IF_ERROR(Run(update_, context));
  if (profiler_) profiler_->EndStep();
  return Finish("", context);
}

Status Executor::RunEval(std::string_view eval) {
  const auto program = evals_.find(eval);
  if (program == evals_.end())
    return InvalidArgument("graph {}: it has no eval section \"{}\"", graph_->name(), eval);
  StepContext context;
  context.seed = options_.seed;
  ZG_RETURN_IF_ERROR(Run(program->second, context));
  return Finish(eval, context);
}

Status Executor::Run(Program& program, const StepContext& context) {
  return device_.is_host() ? RunInstructions(program, context) : RunOnDevice(program, context);
}

Status Executor::RunInstructions(Program& program, const StepContext& context) {
  const bool is_watched = options_.detect_anomaly || profiler_;
  for (Instruction& instruction : program.instructions) {
    if (queue_limit_ != nullptr && !is_recording_) {
      ZG_RETURN_IF_ERROR(
          queue_limit_->BeforeInstruction().WithContext(fmt::format("step {}", context.step)));
    }
    Status status = is_watched ? RunWatched(instruction, context) : RunOne(instruction, context);
    if (!status.ok()) {
      const ir::Node& node = *instruction.node;
      const bool is_output = node.op->traits.kind == ir::OpKind::kOutput;
      const std::string who = is_output ? "" : ", " + NameOf(node);
      return status.WithContext(fmt::format("step {}{}", context.step, who));
    }
    if (!options_.measure_memory) continue;
    for (const Operand& operand : instruction.operands) {
      meter_->Touch(operand.buffer, instruction.timeline, instruction.position, operand.begin,
                    operand.end);
    }
  }
  return Status::Ok();
}

// With what --detect-anomaly and --profile do before and after.
Status Executor::RunWatched(Instruction& instruction, const StepContext& context) {
  std::optional<NodeAnomalies> anomalies;
  // Before the node runs: outputs may take the place of inputs.
  if (options_.detect_anomaly) {
    anomalies.emplace(*graph_, *instruction.node, instruction.inputs);
  }
  const int64_t begin = profiler_ ? profiler_->Now() : 0;
  ZG_RETURN_IF_ERROR(RunOne(instruction, context));
  if (profiler_) profiler_->EndNode(instruction.index, begin);
  if (!anomalies) return Status::Ok();
  return anomalies->CheckOutputs(instruction.outputs, context, communicator_->rank());
}

Status Executor::RunOne(Instruction& instruction, const StepContext& context) {
  if (instruction.kernel != nullptr) {
    KernelArguments arguments{instruction.inputs.data(), instruction.outputs.data(),
                              instruction.workspace, &context};
    if (device_inputs_ != nullptr) {
      arguments.stream = device_.stream();
      arguments.device_step = device_inputs_->device_context();
      arguments.fault = reinterpret_cast<DeviceFault*>(fault_.get());
      arguments.node = instruction.index;
    }
    const Status status = instruction.kernel->Run(arguments);
    if (status.ok() || instruction.node->op->traits.kind != ir::OpKind::kUpdate) return status;
    return Status(status.code(), status.message() + BlamedUpdate(instruction) + kNonFiniteHint);
  }
  if (instruction.is_input()) {
    if (device_inputs_ != nullptr) {
      return device_inputs_->QueueInput(instruction.slot, instruction.outputs[0]);
    }
    const InputSlot& slot = inputs_[instruction.slot];
    if (slot.data == nullptr) return InvalidArgument("input \"{}\" was not set", slot.name);
    return device_.CopyIn(instruction.outputs[0], slot.data, slot.bytes);
  }
  if (instruction.slot >= 0) {  // output
    OutputSlot& slot = outputs_[instruction.slot];
    std::byte* const to = slot.pinned != nullptr ? slot.pinned.get() : slot.data.data();
    ZG_RETURN_IF_ERROR(
        device_.CopyOut(to, instruction.inputs[0], static_cast<int64_t>(slot.data.size())));
    return device_.is_host() ? CheckOutput(slot, context) : Status::Ok();
  }
  return device_.Copy(const_cast<void*>(instruction.inputs[0]), instruction.inputs[1],
                      instruction.operands[0].end - instruction.operands[0].begin);  // assign
}

StatusOr<const std::vector<std::byte>*> Executor::Output(std::string_view eval,
                                                         std::string_view name) const {
  for (const OutputSlot& slot : outputs_) {
    if (slot.eval == eval && slot.name == name) return &slot.data;
  }
  return InvalidArgument("graph {}{}{}: it has no output \"{}\"", graph_->name(),
                         eval.empty() ? "" : ", eval ", eval, name);
}

bool Executor::HasOutput(std::string_view eval, std::string_view name) const {
  return Output(eval, name).ok();
}

std::optional<Profile> Executor::profile() const {
  return profiler_ ? profiler_->Result() : std::nullopt;
}

Executor::LocalPart Executor::LocalPartOf(const ir::StoredTensor& tensor) const {
  const LocalElements elements = LocalElementsOf(*graph_, tensor, communicator_->rank());
  LocalPart part;
  if (elements.count == 0) return part;
  part.begin = elements.begin;
  part.count = elements.count;
  part.data = arena_ + OperandOf(tensor.storage).begin +
              elements.storage_offset * SizeOf(tensor.type.dtype);
  return part;
}

}  // namespace zg
