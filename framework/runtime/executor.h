// Executor: a compiled graph on one rank. Creating it makes the kernels, plans the arena, allocates
// it and resolves every address; after that a step is a walk over a flat list of instructions that
// allocates nothing.
//
//   ZG_ASSIGN_OR_RETURN(auto executor, Executor::Create(&graph, CpuKernels(), &communicator, {.seed
//   = 1})); ZG_RETURN_IF_ERROR(executor->RunStep(1, 1.0, [&](int64_t micro_step) { return
//   executor->SetInput("", "x", data, bytes); })); float loss =
//   executor->OutputAs<float>("loss")[0];
//
// Every rank of the mesh creates it from the same graph and calls it in the same order.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/ir/graph.h"
#include "framework/kernels/kernel.h"
#include "framework/passes/plan_memory.h"
#include "framework/runtime/memory_meter.h"

namespace zg {

struct ExecutorOptions {
  uint64_t seed = 0;  // of initial values and dropout
  bool measure_memory =
      true;  // keep a MemoryMeter on every run; costs a few comparisons per operand
  // A loss, norm of gradients or updated parameter that is infinite or NaN is an error of RunStep.
  // Of the first two every rank sees the same, and nothing is updated yet.
  bool stop_on_non_finite = false;
  bool detect_anomaly = false;  // the same for what any node computes (runtime/anomaly.h); slow
};

class Executor {
 public:
  // The graph must be compiled (no `place` left) and outlive the executor. Ranks whose graphs
  // differ are told the first differing line before anything is allocated.
  static StatusOr<std::unique_ptr<Executor>> Create(const Graph* graph,
                                                    const KernelRegistry& kernels,
                                                    Communicator* communicator,
                                                    ExecutorOptions options);

  // What the next runs of a program read for its input of that name: this rank's part, whole and
  // contiguous; must stay valid while they run. `eval` names an eval section, "" is training.
  // Error: no such input, or another size.
  Status SetInput(std::string_view eval, std::string_view name, const void* data, int64_t bytes);

  // One training step. `feed(j)` sets the inputs of local micro-batch j, which has index
  // j * ranks + rank in the step.
  using Feed = std::function<Status(int64_t micro_step)>;
  Status RunStep(int64_t step, double lr_factor, const Feed& feed);
  Status RunEval(std::string_view eval);

  // What the last run of a program handed out under that name; whole on every rank.
  StatusOr<const std::vector<std::byte>*> Output(std::string_view eval,
                                                 std::string_view name) const;

  // Reads or writes the logical elements [begin, begin + count) of a stored tensor that lie on this
  // rank.
  struct LocalPart {
    int64_t begin = 0;  // element of the tensor
    int64_t count = 0;
    std::byte* data = nullptr;
  };
  LocalPart LocalPartOf(const StoredTensor& tensor) const;

  const Graph& graph() const { return *graph_; }
  const MemoryPlan& plan() const { return plan_; }
  const MemoryMeter& meter() const { return *meter_; }
  Communicator& communicator() const { return *communicator_; }

 private:
  struct Operand {
    int buffer = 0;
    int64_t begin = 0;  // in the arena
    int64_t end = 0;
  };
  struct Instruction {
    const Node* node = nullptr;
    std::unique_ptr<Kernel> kernel;  // null: an input, an output, or an assignment that copies
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    void* workspace = nullptr;
    int slot = -1;  // of an input or output
    int timeline = 0;
    int position = 0;
    std::vector<Operand> operands;  // for the meter
  };
  struct InputSlot {
    std::string eval;
    std::string name;
    int64_t bytes = 0;
    const void* data = nullptr;
  };
  struct OutputSlot {
    std::string eval;
    std::string name;
    std::vector<std::byte> data;
  };

  Executor(const Graph* graph, Communicator* communicator, ExecutorOptions options)
      : graph_(graph), communicator_(communicator), options_(options) {}

  Status Resolve();
  void ResolveNode(const Node& node, int timeline, int position, std::vector<Instruction>* program);
  Operand OperandOf(const Value* value) const;
  void AddOperand(int buffer, Instruction* instruction) const;  // the whole buffer
  Status Run(std::vector<Instruction>& program, const StepContext& context);
  Status RunOne(Instruction& instruction, const StepContext& context);
  Status RunChecked(Instruction& instruction, const StepContext& context);
  Status HandOut(const Instruction& instruction, const StepContext& context);
  std::string ElementAt(const void* address) const;  // of which tensor; for messages
  std::string BlamedGradient() const;
  std::string BlamedUpdate(const Instruction& instruction) const;

  const Graph* graph_;
  Communicator* communicator_;
  ExecutorOptions options_;
  MemoryPlan plan_;
  std::byte* arena_ = nullptr;
  std::unique_ptr<MemoryMeter> meter_;
  std::unordered_map<const Node*, std::unique_ptr<Kernel>> kernels_;  // empty after Resolve
  std::vector<Instruction> micro_batch_;                              // forward and backward
  std::vector<Instruction> update_;
  std::map<std::string, std::vector<Instruction>, std::less<>> evals_;
  std::vector<InputSlot> inputs_;
  std::vector<OutputSlot> outputs_;
};

}  // namespace zg
