// Trace: one run of a function given to Graph::train or Graph::eval, and the section of the graph
// that it writes. Functions and modules find it as the thread's current one. Users of the API do
// not need it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/ir/builder.h"
#include "framework/nn/var.h"

namespace zg::nn {

class ChosenWeights;
class ParameterValues;
class Variable;

// Gets the nodes of a trace as they are appended: an eager session, which runs them. A trace of a
// graph has none.
class NodeRunner {
 public:
  virtual ~NodeRunner() = default;
  virtual Status Run(ir::Node* node) = 0;
  virtual void HasRun(ir::Node* node) = 0;  // all of whose outputs have been held
  // An owner that keeps the value alive while a Var holds it.
  virtual std::shared_ptr<const void> Hold(ir::Value* value) = 0;
  // The weights for evaluation of a variable: others than its own where an optimizer has such.
  virtual ir::Value* ForEval(ir::Value* variable) = 0;
  // Error: an optimizer has taken steps without keeping such.
  virtual Status CheckAveraged(const ir::Value& variable) const = 0;
  virtual void Fail(const Status& status) = 0;  // ends the process
};

// Ends the process with the error.
[[noreturn]] void EndProcess(const Status& status);

// An error unless the name is letters, digits and '_' in parts joined by '.'. `what` is for the
// message: "input".
Status CheckName(std::string_view what, std::string_view name);

// Gives the value the name, and another one to the value that has it.
void TakeName(ir::Graph& graph, ir::Value* value, const std::string& name);

class Trace {
 public:
  // The parameters and buffers that the graph has used so far.
  struct Variables {
    std::unordered_map<int64_t, ir::Value*> values;  // their `variable` nodes, by Variable::id()
    std::vector<std::shared_ptr<std::string>> late_changes;  // LateChange
    // Error: one of them has changed since.
    Status CheckUnchanged() const;
  };

  // Is the thread's current trace until its destruction.
  Trace(ir::Graph* graph, ir::Section* section, Variables* variables, NodeRunner* runner = nullptr);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  static Trace* Current();  // null if nothing is traced
  // The current trace, for functions that are only valid while a graph is traced. If there is none,
  // ends the process with an error that names `caller`: "relu", "module 'blocks.0'".
  static Trace& Of(std::string_view caller);

  // While it exists, errors also name the function of Vars that was called, if an op that the
  // function is made of does not fit: "max: top_k: x is not floating-point". Among functions that
  // call each other the outermost is named. The name must outlive the object. If nothing is traced,
  // ends the process as Of does.
  class Function {
   public:
    explicit Function(std::string_view name);
    ~Function();
    Function(const Function&) = delete;
    Function& operator=(const Function&) = delete;

   private:
    Trace& trace_;
    bool is_outermost_;
  };

  // Appends one node, named after scope and op; returns its first output. Errors: an input that is
  // empty or belongs to another trace, and those of the op.
  Var Append(const std::string& op, const std::vector<Var>& inputs, ir::Attributes attributes = {},
             const std::string& name = "");
  // Returns all its outputs; none after an error.
  std::vector<Var> AppendAll(const std::string& op, const std::vector<Var>& inputs,
                             ir::Attributes attributes = {}, const std::string& name = "");
  // What the variable reads as (parameter_values.h); makes it at the first use.
  Var Read(const Variable& variable);
  Status CheckUsable(const Var& var) const;  // not empty, and of this trace

  // For nodes that were appended through builder(): in eager mode, runs those from the section's
  // node `first` on. Returns all their results, so that the values stay alive.
  std::vector<Var> RunFrom(size_t first);
  Var Hold(ir::Value* value) const;  // a value of this trace as a Var

  Var Fail(const Status& status);  // keeps the first, with the scope; returns an empty Var
  const Status& status() const { return status_.ok() ? builder_.status() : status_; }

  bool training() const { return training_; }
  void set_training(bool training) { training_ = training; }
  // Whether the program leaves rows to later runs (nn/decoding.h).
  bool fills_caches() const { return fills_caches_; }
  void set_fills_caches() { fills_caches_ = true; }
  int64_t NextStream();                            // a new random stream, numbered within its scope
  void RestartStreams() { num_streams_.clear(); }  // each eager step draws from the same streams
  ir::Builder& builder() { return builder_; }

 private:
  friend class ChosenWeights;
  friend class ParameterValues;

  // Whether it reads as its weights for evaluation now (averaged_parameters.h).
  bool ReadsAverage(const Variable& variable) const;
  // Tells values of a variable apart: its id, and whether they are of its weights for evaluation.
  using ReadKey = std::pair<int64_t, bool>;
  ReadKey KeyOf(const Variable& variable) const;
  Var ReadOwn(const Variable& variable);  // its own value
  // The weights that functions read now.
  Var WeightsOf(ir::Value* value, const Variable& variable);
  Var ReadAs(const Variable& variable);      // what Parameter::reads_as makes of it
  Status Named(const Status& status) const;  // with the function that was called
  void NameErrorOfBuilder();

  ir::Builder builder_;
  Status status_;  // the builder's error, with the function; ok: there is none, or no function
  std::string_view function_;
  NodeRunner* runner_;
  bool training_;
  bool fills_caches_ = false;
  Variables* variables_;
  Trace* previous_;
  int64_t id_;
  ParameterValues* values_ = nullptr;                  // the innermost; null: none
  ChosenWeights* chosen_weights_ = nullptr;            // likewise
  std::map<ReadKey, Var> read_as_;                     // of a graph
  std::unordered_map<ir::Value*, Var> other_weights_;  // by variable; of a graph
  std::map<std::string, uint64_t> num_streams_;        // number of streams taken so far, by scope
};

}  // namespace zg::nn
