// Executor: a compiled graph on one rank. Its creation makes the kernels, allocates the arena and
// resolves every address. After that a step is a walk over flat lists of instructions
// that allocates nothing. Its runner (runner.h) executes them on the device of the communicator.
//
//   ZG_ASSIGN_OR_RETURN(auto executor,
//                       Executor::Create(&graph, CpuKernels(), &communicator, options));
//   ZG_RETURN_IF_ERROR(executor->RunStep(1, 1.0, [&](int64_t micro_batch) {
//     return executor->SetInput("", "x", DType::kF32, data, bytes);
//   }));
//   ZG_ASSIGN_OR_RETURN(const OutputSlot* loss, executor->Output("loss"));
//
// Every rank of the mesh must create it from the same graph and make the same calls in the same
// order.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/device/device.h"
#include "framework/ir/graph.h"
#include "framework/ir/variant.h"
#include "framework/kernels/kernel.h"
#include "framework/passes/plan_memory.h"
#include "framework/runtime/bound_program.h"
#include "framework/runtime/gradient_histograms.h"
#include "framework/runtime/memory_meter.h"
#include "framework/runtime/profile.h"
#include "framework/runtime/runner.h"
#include "framework/runtime/same_on_all_ranks.h"

namespace zg {

struct ExecutorOptions {
  std::set<std::pair<std::string, std::string>> unused_inputs = {};  // as in Program: may be set
  uint64_t seed = 0;  // for initial values and dropout
  // Records in a MemoryMeter the memory that every run touches: a few comparisons per operand.
  bool measure_memory = true;
  // A loss, a gradient norm or an updated parameter that is infinite or NaN is an error of RunStep.
  // Every rank sees the same loss and norm; on the host they are checked before the update.
  bool stop_on_non_finite = false;
  // Checks every value that a node computes (anomaly.h). Slow; for the host only.
  bool detect_anomaly = false;
  // The clock that measures the time of every node; null: no measurement. For the host only.
  NanosecondClock profile_clock = nullptr;
  // Number of steps between two histograms of the gradients (gradient_histograms.h); 0: never. For
  // the host only.
  int64_t gradient_histograms_every = 0;
  int64_t timeline_steps = 0;  // measured with the same clock: so many first steps are kept for
                               // timeline()
  // Records a device's work once and then replays it (a CUDA graph).
  bool record = false;
  // The plan of the graph for these kernels and this communicator (Program::memory), needed only by
  // Create; null: it plans.
  const MemoryPlan* memory = nullptr;
  // For messages, if there are other programs of the same parameters.
  Variant variant = {};
  // An executor of the same variables (passes/same_variables.h), whose arena this one uses, and
  // which must outlive it; null: it allocates one. Their steps may follow each other in any order.
  class Executor* arena_of = nullptr;
};

class Executor {
 public:
  // The graph must be compiled (no `place` left) and must outlive the executor. If graphs differ
  // between ranks, all get the first differing line before anything is allocated. The executor uses
  // as many threads as the kernels ask for (KernelOptions).
  static StatusOr<std::unique_ptr<Executor>> Create(const ir::Graph* graph,
                                                    const KernelRegistry& kernels,
                                                    Communicator* communicator,
                                                    ExecutorOptions options);
  ~Executor();

  // Sets the input for the next micro-batch or eval, and not for those after it: this rank's part,
  // contiguous. The data must stay valid until then, unless it `is_copied`. `eval` names an eval section;
  // "" is training. Errors: no such input; another dtype or number of bytes; an input that is set; a
  // condition that is neither 0 nor 1.
  Status SetInput(std::string_view eval, std::string_view name, DType dtype, const void* data,
                  int64_t bytes, bool is_copied = false);
  // As if none of them had been set.
  void ForgetInputs(std::string_view eval);

  // Which groups of parameters (optim/update_rules.h) a step updates.
  struct StepGroups {
    std::string names = {};  // for messages; "": all groups
    // By group: the number of its update, from 1; 0: the step does not update it. Empty: it updates
    // all groups, and the number is that of the step.
    std::vector<int64_t> update_numbers = {};
  };
  // One training step. The factor of the learning rate, the groups and inputs with placement B must
  // be the same on all ranks, otherwise every rank gets an error with two of the values. `feed` sets
  // the inputs of each micro-batch that this rank computes; `micro_batch` is its index in the step,
  // over all ranks. Nodes that only the updates of other groups need do not run
  // (passes/nodes_of_groups.h). Error: only some groups, with ExecutorOptions::record.
  using Feed = std::function<Status(int64_t micro_batch)>;
  Status RunStep(int64_t step, double lr_factor, const Feed& feed, const StepGroups& groups);
  Status RunStep(int64_t step, double lr_factor, const Feed& feed) {
    return RunStep(step, lr_factor, feed, StepGroups());
  }
  int64_t micro_batches_per_rank() const { return graph_->micro_batches() / num_data_ranks_; }

  // Which run of an eval program it is, for its random values.
  struct EvalRun {
    int64_t steps_done = 0;
    int64_t number = 0;  // since the last step, from 0
  };
  Status RunEval(std::string_view eval, const EvalRun& run);
  Status RunEval(std::string_view eval) { return RunEval(eval, EvalRun()); }
  // The eval programs that have never run: meter() knows nothing of their memory, which is planned.
  std::vector<std::string> EvalsNotRun() const;

  // Makes the kernels of these nodes again, whose attributes have changed since Create(). Whether it
  // did: not if one needs other scratch memory than is planned. Error: that of Settle().
  StatusOr<bool> RemakeKernels(const std::vector<const ir::Node*>& nodes,
                               const KernelRegistry& kernels);

  // An output of the last step, on the host. Error: no such output.
  StatusOr<const OutputSlot*> Output(std::string_view name) const;
  int64_t step_result_bytes() const;  // of all outputs, on the host beside the arena
  bool HasOutput(std::string_view name) const { return Output(name).ok(); }

  // This rank's part of a result of the eval section that ran last, in the memory of device(). The
  // next run overwrites it. Errors: no such result; another section or a step ran last.
  struct LocalResult {
    const ir::Value* value = nullptr;
    const std::byte* data = nullptr;
  };
  StatusOr<LocalResult> Result(std::string_view eval, std::string_view name) const;

  // The elements of a stored tensor on this rank. Error: that of Settle().
  StatusOr<LocalPart> LocalPartOf(const ir::StoredTensor& tensor) const;

  // Waits for work that the last step has left to the next, such as transfers or updates; after it
  // every value is in its place. Error: some of that work failed.
  Status Settle() const;
  // The traffic of the steps. Error: that of Settle().
  StatusOr<TrafficCounters> StepTraffic() const;

  // Another number after each change of stored values, by a step or from outside (set_changed), and
  // never that of another executor: what was computed from them is up to date while it stays. A step
  // of an executor that shares the arena is a change, too.
  int64_t version() const { return version_; }
  void set_changed();

  const ir::Graph& graph() const { return *graph_; }
  const Variant& variant() const { return options_.variant; }
  const MemoryPlan& plan() const { return plan_; }
  const MemoryMeter& meter() const { return *meter_; }
  // The time of this rank's steps by node; none without ExecutorOptions::profile_clock.
  std::optional<Profile> profile() const;
  // When the nodes of the first steps ran; null without ExecutorOptions::profile_clock.
  const Timeline* timeline() const { return profiler_ ? &profiler_->timeline() : nullptr; }
  // The distribution of the last step's gradients on this rank; null if they were not counted.
  GradientHistograms* gradient_histograms() {
    return gradient_histograms_ ? &*gradient_histograms_ : nullptr;
  }
  Communicator& communicator() const { return *communicator_; }
  Device& device() const { return device_; }

 private:
  Executor(const ir::Graph* graph, Communicator* communicator, ExecutorOptions options);
  StatusOr<std::byte*> AllocateArena();
  Status TakeTurn();         // before a step
  Status SettleOwn() const;  // the work of this executor's steps
  Status ActivateNodesOf(const StepGroups& groups);

  const ir::Graph* graph_;
  Communicator* communicator_;
  Device& device_;
  ExecutorOptions options_;
  int num_data_ranks_ = 1;
  int data_index_ = 0;
  int64_t version_ = 0;
  std::optional<std::set<int64_t>> active_groups_;  // of the last step; none: all
  MemoryPlan plan_;
  std::unique_ptr<MemoryMeter> meter_;
  std::optional<Profiler> profiler_;
  std::optional<GradientHistograms> gradient_histograms_;
  BoundProgram program_;
  std::optional<SameOnAllRanks> same_;
  std::unique_ptr<Runner> runner_;
  // Updated when the transfers of steps have ended; the counters run since the first of these
  // steps.
  mutable TrafficCounters step_traffic_ = {};
  mutable std::optional<TrafficCounters> before_steps_;
  Status RunMicroBatch(const StepContext& context, const Feed& feed);
  Status NoEval(std::string_view eval) const;  // the error of an unknown one
  Status RunEvalList(std::string_view eval, InstructionList& list, const EvalRun& run);
  const InstructionList* last_eval_ = nullptr;  // null: a step ran last, or nothing
  std::set<std::string, std::less<>> evals_run_;
  Executor* owner_ = this;               // of the arena
  bool is_in_arena_ = false;             // as its owner
  std::vector<const Executor*> guests_;  // others in this one's arena
  const Executor* last_stepped_ = this;  // of the owner and its guests; used by the owner
};

}  // namespace zg
