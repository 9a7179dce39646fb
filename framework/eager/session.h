// Session: the graph behind an Eager. Every node that functions and modules append to it runs at
// once. Nodes stay, as the tape of backward(), while their values are needed. Users of the API do
// not need it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "framework/base/status.h"
#include "framework/device/device.h"
#include "framework/eager/eager.h"
#include "framework/eager/memory_pool.h"
#include "framework/eager/node_kernels.h"
#include "framework/io/weights.h"
#include "framework/ir/builder.h"
#include "framework/ir/graph.h"
#include "framework/nn/trace.h"
#include "framework/nn/var.h"
#include "framework/optim/optimizer.h"

namespace zg::eager {

class Session : public nn::NodeRunner, public std::enable_shared_from_this<Session> {
 public:
  // Errors: no such device, or it cannot compute so; a file that cannot be read.
  static StatusOr<std::shared_ptr<Session>> Create(const EagerOptions& options);
  Session(std::unique_ptr<Device> gpu, const KernelRegistry* kernels);  // no GPU: the host
  void End();  // functions no longer run here afterwards

  // nn::NodeRunner
  Status Run(ir::Node* node) override;
  void HasRun(ir::Node* node) override;
  std::shared_ptr<const void> Hold(ir::Value* value) override;
  ir::Value* ForEval(ir::Value* variable) override;
  Status CheckAveraged(const ir::Value& variable) const override;
  void Fail(const Status& status) override;  // ends the process

  StatusOr<Var> Constant(const TensorType& type, const void* data);  // of the host
  // The elements where the host can read them: in the value itself, or copied into `scratch`.
  StatusOr<const std::byte*> Read(const ir::Value& value, std::vector<std::byte>* scratch) const;
  Status Backward(ir::Value* loss);
  void RequireGradient(ir::Value* value) { leaves_.insert(value); }
  Var GradientOf(const ir::Value* value) const;
  void ZeroGradients();
  Status Step(const optim::Optimizer& optimizer, double lr_factor);
  Status SetTraining(bool training);
  // Whether results of functions keep what they were computed from, for gradients.
  bool keeps_history() const { return keeps_history_; }
  void set_keeps_history(bool keeps) { keeps_history_ = keeps; }

  // The session of an eager value; null for a value that is being traced.
  static std::shared_ptr<Session> Of(const Var& var);

 private:
  // The memory of a value; views share their input's memory.
  struct Memory {
    std::shared_ptr<std::byte> owner;
    std::byte* data = nullptr;
    int64_t step = 0;  // the step in which it was computed
  };
  struct Handle;
  // A state of an optimizer for one parameter.
  struct State {
    std::string name;
    TensorType type;
    Memory memory;
  };

  Status Start(const EagerOptions& options);
  StatusOr<Memory> Allocate(int64_t bytes);
  Status Allocate(const ir::Value& value);
  Var Input(const TensorType& type, const std::string& name);  // whose elements are undefined
  StatusOr<Var> CopyOf(const ir::Value& value, const std::string& name = "x");
  Status Initialize(const ir::Value& variable);
  Status FillInitialValues(const ir::StoredTensor& tensor, std::vector<float>* values) const;
  Status RunKernel(const ir::Node& node);
  Status RunView(const ir::Node& node);
  // Runs nodes that were appended together; values that no later node of them reads are released at
  // once.
  Status RunAll(const std::vector<ir::Node*>& nodes,
                const std::unordered_set<const ir::Value*>& kept);
  void Release(ir::Value* value);                       // one handle less
  void EraseUnused(std::vector<ir::Node*> candidates);  // and what only they used
  bool IsUsed(const ir::Value* value) const;
  Status CheckIsCurrent(const std::vector<ir::Node*>& nodes) const;
  Status Accumulate(const ir::Value* leaf, ir::Value* gradient);
  Status Update(const optim::UpdateRule& optimizer, ir::Value* parameter);
  // Those of the rule, zeros before the first step. Error: the steps before had others.
  Status PrepareStates(const optim::UpdateRule& rule, const ir::Value& parameter);
  // The parameter's states as values, for a node that lives for one run.
  std::vector<ir::Value*> StateValues(const ir::Value* parameter, ir::Builder* builder);
  void EraseUpdateNodes();
  bool ReadsEvalWeights(const std::vector<ir::Node*>& nodes) const;
  Status AddNextValue(ir::Node* node);
  Status ContextChanged();  // that of the kernels which are not updates
  Status SetBuffers();

  const std::unique_ptr<Device> gpu_;  // null: the host
  Device& device_;
  MemoryPool pool_;
  NodeKernels kernels_;
  ir::Graph graph_{"eager"};
  nn::Trace::Variables variables_;
  std::optional<nn::Trace> trace_;
  std::optional<Weights> initial_values_;
  NameInFile name_in_file_;
  StepContext context_;
  bool keeps_history_ = true;
  std::unordered_map<const ir::Value*, Memory> memory_;
  std::unordered_map<const ir::Value*, int> num_handles_;
  std::unordered_set<const ir::Value*> leaves_;  // that require a gradient, beside parameters
  std::unordered_map<const ir::Value*, Var> gradients_;
  // The updates of a parameter so far: by which op, and its states.
  struct Updates {
    std::string op;
    int64_t count = 0;
    std::vector<State> states;
  };
  std::unordered_map<const ir::Value*, Updates> updates_;
  // What the weights for evaluation are computed by, of the parameter and its states, where an
  // optimizer has some; and these weights of this step, once they were read.
  std::unordered_map<const ir::Value*, std::string> eval_programs_;
  std::unordered_map<const ir::Value*, Var> eval_weights_;
  // The sum of the next values of a buffer since the last step, and how many there are.
  struct NextValues {
    std::vector<float> sum;
    int64_t count = 0;
  };
  std::unordered_map<const ir::Value*, NextValues> next_values_;
};

}  // namespace zg::eager
