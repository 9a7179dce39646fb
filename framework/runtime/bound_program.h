// BoundProgram: a compiled graph with the addresses of one rank's arena: flat lists of instructions
// that a runner (runner.h) executes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/ir/graph.h"
#include "framework/kernels/kernel.h"
#include "framework/passes/step_results.h"
#include "framework/runtime/memory_meter.h"
#include "framework/runtime/plan_program.h"
#include "framework/runtime/rank_memory.h"

namespace zg {

// A node that does work when it runs.
struct Instruction {
  const ir::Node* node = nullptr;
  // Null for an input, an output, or an assignment that copies.
  std::unique_ptr<Kernel> kernel;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  void* workspace = nullptr;
  int slot = -1;     // of a training input or output
  int64_t part = 0;  // KernelArguments::part
  int index = 0;     // among all nodes
  int timeline = 0;
  int position = 0;
  std::vector<Operand> operands;  // inputs, outputs, scratch memory
  std::vector<int> starts{};      // for a wait: the indices of the starts that it waits for
  int group = -1;                 // of an update: the group of its parameters; -1: no update's
  bool is_active = true;          // in this step (Executor::RunStep); else it is left out

  ir::OpKind kind() const { return node->op->traits.kind; }

  // The arguments of its kernel on any device; the context must exist until it has run.
  KernelArguments Arguments(const StepContext* context) const {
    KernelArguments arguments{inputs.data(), outputs.data(), workspace, context};
    arguments.part = part;
    return arguments;
  }
};

// Instructions that run one after the other: forward and backward of a micro-batch, the update, or
// an eval section.
struct InstructionList {
  int index = 0;  // among the lists of the program
  std::vector<Instruction> instructions;
};

// An input: this rank's part, which the caller owns.
struct InputSlot {
  std::string eval;  // "": training
  std::string name;
  TensorType type;
  int64_t bytes = 0;
  bool is_same_on_all_ranks = false;  // placement B
  const void* data = nullptr;         // null: not set
  std::vector<std::byte> copy = {};   // of data that is not kept valid
};

// An output of training, on the host.
struct OutputSlot {
  std::string name;
  StepResult result;
  std::vector<std::byte> data;  // its parts, in the order of this rank's micro-batches
  // An output of the framework: an infinity or NaN in it ends training that stops on non-finite
  // values.
  bool must_be_finite = false;

  // The offset of the micro-batch's part, in bytes.
  int64_t OffsetOf(const ir::Graph& graph, int64_t micro_batch) const {
    if (result.num_parts == 1) return 0;
    return micro_batch / graph.mesh().num_data_ranks() * result.type.bytes();
  }
};

// A result of an eval section. It stays in the arena until the next run.
struct EvalResult {
  std::string eval;
  std::string name;
  const ir::Value* value = nullptr;
};

struct BoundProgram {
  RankMemory memory;
  InstructionList micro_batch;  // forward and backward
  InstructionList update;
  std::map<std::string, InstructionList, std::less<>> evals;
  std::vector<InputSlot> inputs;
  std::vector<OutputSlot> outputs;
  std::vector<EvalResult> results;
  int num_nodes = 0;   // Instruction::index is below it
  int num_starts = 0;  // instructions that only start a transfer (ir::IsStart)
  // By group of parameters: the number of its update in this step, which is that update's step.
  std::vector<int64_t> update_numbers;

  std::vector<InstructionList*> Lists();  // by index
  std::vector<const InstructionList*> Lists() const;
};

// Takes the kernels out of `kernels` and makes those of boxing nodes, whose groups synchronise, so
// every rank of the job must call this. The arena must be allocated for the plan in `memory`.
StatusOr<BoundProgram> BindProgram(const RankMemory& memory, ProgramKernels kernels,
                                   Communicator* communicator);

// "step 3, embedding of token_embedding"; in an eval program "eval predict, embedding".
std::string StepAndNode(const Instruction& instruction, int64_t step);

// Reports the operands of an instruction that has run.
void Touch(const Instruction& instruction, MemoryMeter* meter);

}  // namespace zg
