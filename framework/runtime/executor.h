// Executor: a compiled graph on one rank. Creating it makes the kernels, plans the arena, allocates
// it and resolves every address; after that a step is a walk over a flat list of instructions that
// allocates nothing. It runs where the communicator has its arena: on the host, or on a device,
// which is told a whole step before the host waits for it.
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
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/device/device.h"
#include "framework/ir/graph.h"
#include "framework/kernels/kernel.h"
#include "framework/passes/plan_memory.h"
#include "framework/runtime/device_inputs.h"
#include "framework/runtime/memory_meter.h"
#include "framework/runtime/profile.h"
#include "framework/runtime/queue_limit.h"

namespace zg {

struct ExecutorOptions {
  uint64_t seed = 0;  // of initial values and dropout
  bool measure_memory =
      true;  // keep a MemoryMeter on every run; costs a few comparisons per operand
  // A loss, norm of gradients or updated parameter that is infinite or NaN is an error of RunStep.
  // Of the first two every rank sees the same, and on the host nothing is updated yet.
  bool stop_on_non_finite = false;
  // The same for what any node computes (runtime/anomaly.h); slow, and for the host only.
  bool detect_anomaly = false;
  // Measures with it what training steps spend their time on; for the host only. Null: nothing is.
  NanosecondClock profile_clock = nullptr;
  bool record = false;  // record what a device is to do for a program, and replay that
};

class Executor {
 public:
  // The graph must be compiled (no `place` left) and outlive the executor. Ranks whose graphs
  // differ are told the first differing line before anything is allocated.
  static StatusOr<std::unique_ptr<Executor>> Create(const ir::Graph* graph,
                                                    const KernelRegistry& kernels,
                                                    Communicator* communicator,
                                                    ExecutorOptions options);

  // What the next runs of a program read for its input of that name: this rank's part, whole and
  // contiguous; must stay valid until the next `feed` or the end of the run. `eval` names an eval
  // section, "" is training. Error: no such input, or another size.
  Status SetInput(std::string_view eval, std::string_view name, const void* data, int64_t bytes);

  // One training step. `feed(j)` sets the inputs of local micro-batch j, which has index
  // j * mesh.num_data_ranks() + mesh.DataIndex(rank) in the step.
  using Feed = std::function<Status(int64_t micro_step)>;
  Status RunStep(int64_t step, double lr_factor, const Feed& feed);
  Status RunEval(std::string_view eval);

  // What the last run of a program handed out under that name; whole on every rank.
  StatusOr<const std::vector<std::byte>*> Output(std::string_view eval,
                                                 std::string_view name) const;
  bool HasOutput(std::string_view eval, std::string_view name) const;

  // Reads or writes the logical elements [begin, begin + count) of a stored tensor that lie on this
  // rank.
  struct LocalPart {
    int64_t begin = 0;  // element of the tensor
    int64_t count = 0;
    std::byte* data = nullptr;  // memory of device(): the host's, or to be copied
  };
  LocalPart LocalPartOf(const ir::StoredTensor& tensor) const;

  const ir::Graph& graph() const { return *graph_; }
  const MemoryPlan& plan() const { return plan_; }
  const MemoryMeter& meter() const { return *meter_; }
  // Of the steps so far on this rank; none without a clock for it.
  std::optional<Profile> profile() const;
  Communicator& communicator() const { return *communicator_; }
  Device& device() const { return device_; }

 private:
  struct Operand {
    int buffer = 0;
    int64_t begin = 0;  // in the arena
    int64_t end = 0;
  };
  struct Instruction {
    const ir::Node* node = nullptr;
    std::unique_ptr<Kernel> kernel;  // null: an input, an output, or an assignment that copies
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    void* workspace = nullptr;
    int slot = -1;  // of an input or output
    int index = 0;  // over all programs
    int timeline = 0;
    int position = 0;
    std::vector<Operand> operands;  // for the meter

    bool is_input() const { return slot >= 0 && inputs.empty(); }
  };
  struct Recorded {
    std::unique_ptr<RecordedWork> work;
    TrafficCounters traffic = {};  // of one replay
  };
  struct Program {
    std::vector<Instruction> instructions;
    // By StepContext::first_micro_step, which collectives look at on the host; what is recorded
    // also by the set of inputs that it reads.
    bool has_run[2] = {false, false};
    Recorded recorded[DeviceInputs::kNumSets][2];
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
    TensorType type;
    std::vector<std::byte> data;
    DeviceBytes pinned;  // where a device puts it; null on the host
  };

  Executor(const ir::Graph* graph, Communicator* communicator, ExecutorOptions options)
      : graph_(graph),
        communicator_(communicator),
        device_(communicator->device()),
        options_(options) {}

  Status CheckOptions() const;
  static std::string NameOf(const ir::Node& node);  // "embedding of token_embedding"
  Status Resolve();
  Status ResolveNode(const ir::Node& node, int timeline, int position, Program* program);
  Status PrepareDevice();
  Operand OperandOf(const ir::Value* value) const;
  void AddOperand(int buffer, Instruction* instruction) const;  // the whole buffer
  Status Run(Program& program, const StepContext& context);
  Status RunInstructions(Program& program, const StepContext& context);
  Status RunOne(Instruction& instruction, const StepContext& context);
  Status RunWatched(Instruction& instruction, const StepContext& context);
  Status CheckOutput(const OutputSlot& slot, const StepContext& context) const;
  std::string ElementAt(const void* address) const;  // of which tensor; for messages
  std::string BlamedGradient() const;
  std::string BlamedUpdate(const Instruction& instruction) const;
  Status RunOnDevice(Program& program, const StepContext& context);
  // Waits for the device and takes what it put out.
  Status Finish(std::string_view eval, const StepContext& context);
  Status FaultStatus(const DeviceFault& fault, int64_t step) const;

  const ir::Graph* graph_;
  Communicator* communicator_;
  Device& device_;
  ExecutorOptions options_;
  int num_data_ranks_ = 1;
  int data_index_ = 0;
  MemoryPlan plan_;
  std::byte* arena_ = nullptr;
  std::unique_ptr<MemoryMeter> meter_;
  std::optional<Profiler> profiler_;
  std::unordered_map<const ir::Node*, std::unique_ptr<Kernel>> kernels_;  // empty after Resolve
  Program micro_batch_;                                                   // forward and backward
  Program update_;
  std::map<std::string, Program, std::less<>> evals_;
  int num_instructions_ = 0;
  std::vector<InputSlot> inputs_;
  std::vector<OutputSlot> outputs_;

  // On a device; null on the host.
  std::unique_ptr<DeviceInputs> device_inputs_;
  std::unique_ptr<QueueLimit> queue_limit_;
  DeviceBytes fault_;          // a DeviceFault in its memory
  DeviceBytes pinned_fault_;   // where it is copied to
  bool is_recording_ = false;  // nothing is queued then
};

}  // namespace zg
