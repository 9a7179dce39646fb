#include "framework/runtime/bound_program.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "framework/passes/step_results.h"
#include "framework/runtime/boxing/boxing_kernel.h"

namespace zg {
namespace {

class Binder {
 public:
  Binder(const RankMemory& memory, ProgramKernels kernels, Communicator* communicator)
      : memory_(memory), kernels_(std::move(kernels)), communicator_(communicator) {
    program_.memory = memory;
    for (const auto& section : memory.graph().sections()) {
      if (section->kind == ir::SectionKind::kVariables) continue;
      for (const ir::Node* node : section->nodes) {
        index_[node] = program_.num_nodes++;
        if (ir::IsStart(*node)) ++program_.num_starts;
      }
    }
  }

  StatusOr<BoundProgram> Run() && {
    for (const auto& section : memory_.graph().sections()) {
      if (section->kind == ir::SectionKind::kVariables) continue;
      InstructionList* list = &program_.micro_batch;
      if (section->kind == ir::SectionKind::kUpdate) list = &program_.update;
      if (section->kind == ir::SectionKind::kEval) {
        list = &program_.evals[section->name];
        ++timeline_;
        position_ = 0;
      }
      for (const ir::Node* node : section->nodes) ZG_RETURN_IF_ERROR(Bind(*node, list));
    }
    int index = 0;
    for (InstructionList* list : program_.Lists()) list->index = index++;
    return std::move(program_);
  }

 private:
  // Whether there is a thread for transfers (host_runner.h); a device has a queue for them.
  bool has_thread() const { return program_.num_starts > 0 && communicator_->device().is_host(); }

  Status Bind(const ir::Node& node, InstructionList* list) {
    Instruction instruction;
    instruction.node = &node;
    if (!node.inputs.empty()) {
      const Mesh& mesh = memory_.graph().mesh();
      instruction.part = ShardPositionOf(mesh, node.inputs[0]->sbp, memory_.rank()).part;
    }
    instruction.index = index_.at(&node);
    if (node.attributes.Has("group")) {
      instruction.group = static_cast<int>(node.attributes.Int("group"));
      const size_t num_groups =
          std::max(program_.update_numbers.size(), static_cast<size_t>(instruction.group) + 1);
      program_.update_numbers.resize(num_groups);
    }
    instruction.timeline = timeline_;
    instruction.position = position_++;
    for (const ir::Value* input : node.inputs) {
      instruction.inputs.push_back(Add(memory_.OperandOf(input), &instruction));
    }
    for (const ir::Value* output : node.outputs) {
      instruction.outputs.push_back(Add(memory_.OperandOf(output), &instruction));
    }
    ZG_ASSIGN_OR_RETURN(const bool does_something, BindWork(node, &instruction));
    if (!does_something) return Status::Ok();
    const MemoryPlan& plan = memory_.plan();
    if (IsBoxing(node) && plan.communicator_workspace >= 0) {
      Add(memory_.WholeBuffer(plan.communicator_workspace), &instruction);
    }
    const auto workspace = plan.workspaces.find(&node);
    if (workspace != plan.workspaces.end()) {
      instruction.workspace = Add(memory_.WholeBuffer(workspace->second), &instruction);
    }
    if (instruction.kind() == ir::OpKind::kWait) AddScratchOfStarts(node, &instruction);
    list->instructions.push_back(std::move(instruction));
    return Status::Ok();
  }

  // The scratch memory that the transfers use until they are waited for.
  void AddScratchOfStarts(const ir::Node& wait, Instruction* instruction) const {
    const MemoryPlan& plan = memory_.plan();
    for (const ir::Node* start : ir::StartsOf(wait)) {
      const auto workspace = plan.workspaces.find(start);
      if (workspace == plan.workspaces.end()) continue;
      instruction->operands.push_back(memory_.WholeBuffer(workspace->second));
    }
  }

  // Returns false for a view, or an assignment whose value is produced in place.
  StatusOr<bool> BindWork(const ir::Node& node, Instruction* instruction) {
    switch (instruction->kind()) {
      case ir::OpKind::kInput: {
        instruction->slot = static_cast<int>(program_.inputs.size());
        InputSlot& slot = program_.inputs.emplace_back();
        slot.eval = node.section->name;
        slot.name = node.attributes.String("name");
        slot.type = memory_.graph().LocalType(*node.outputs[0]);
        slot.bytes = slot.type.bytes();
        slot.is_same_on_all_ranks = node.attributes.Sbp("placement").is_broadcast();
        return true;
      }
      case ir::OpKind::kOutput:
        BindOutput(node, instruction);
        return true;
      case ir::OpKind::kAssign:
        return instruction->inputs[0] != instruction->inputs[1];
      case ir::OpKind::kBoxing: {
        ZG_ASSIGN_OR_RETURN(instruction->kernel,
                            MakeBoxingKernel(memory_.graph(), node, memory_.plan(), communicator_,
                                             /*in_thread=*/has_thread()));
        return true;
      }
      case ir::OpKind::kWait:
        for (const ir::Node* start : ir::StartsOf(node)) {
          instruction->starts.push_back(index_.at(start));
        }
        return true;
      default: {
        const auto kernel = kernels_.find(&node);
        if (kernel == kernels_.end()) return false;
        instruction->kernel = std::move(kernel->second);
        return true;
      }
    }
  }

  void BindOutput(const ir::Node& node, Instruction* instruction) {
    const std::string& name = node.attributes.String("name");
    if (node.section->kind == ir::SectionKind::kEval) {
      program_.results.push_back({node.section->name, name, node.inputs[0]});
      return;
    }
    instruction->slot = static_cast<int>(program_.outputs.size());
    OutputSlot& slot = program_.outputs.emplace_back();
    slot.name = name;
    slot.result = StepResultOf(memory_.graph(), node);
    slot.data.resize(slot.result.bytes());
    slot.must_be_finite = name == "loss" || name == "grad_norm";
  }

  std::byte* Add(const Operand& operand, Instruction* instruction) const {
    instruction->operands.push_back(operand);
    return memory_.AddressOf(operand);
  }

  const RankMemory memory_;
  ProgramKernels kernels_;
  Communicator* const communicator_;
  BoundProgram program_;
  std::unordered_map<const ir::Node*, int> index_;
  int timeline_ = 0;
  int position_ = 0;
};

}  // namespace

std::vector<InstructionList*> BoundProgram::Lists() {
  std::vector<InstructionList*> lists = {&micro_batch, &update};
  for (auto& [name, list] : evals) lists.push_back(&list);
  return lists;
}

std::vector<const InstructionList*> BoundProgram::Lists() const {
  std::vector<const InstructionList*> lists = {&micro_batch, &update};
  for (const auto& [name, list] : evals) lists.push_back(&list);
  return lists;
}

StatusOr<BoundProgram> BindProgram(const RankMemory& memory, ProgramKernels kernels,
                                   Communicator* communicator) {
  return Binder(memory, std::move(kernels), communicator).Run();
}

std::string StepAndNode(const Instruction& instruction, int64_t step) {
  const ir::Node& node = *instruction.node;
  const std::string when = node.section->kind == ir::SectionKind::kEval
                               ? "eval " + node.section->name
                               : fmt::format("step {}", step);
  // An output only names the value that it returns.
  if (instruction.kind() == ir::OpKind::kOutput) return when;
  return fmt::format("{}, {}{}{}", when, node.op->name, node.scope.empty() ? "" : " of ",
                     node.scope);
}

void Touch(const Instruction& instruction, MemoryMeter* meter) {
  for (const Operand& operand : instruction.operands) {
    meter->Touch(operand.buffer, instruction.timeline, instruction.position, operand.begin,
                 operand.end);
  }
}

}  // namespace zg
