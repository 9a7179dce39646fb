// Trace: one run of a function given to Graph::train or Graph::eval, and the section of the graph
// that it writes. Functions and modules find it as the thread's current one. Users of the API do
// not need it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "framework/ir/builder.h"
#include "framework/nn/var.h"

namespace zg::nn {

class Variable;

// What takes the nodes of a trace as they are appended: an eager session, which runs them. A trace
// of a graph has none.
class NodeRunner {
 public:
  virtual ~NodeRunner() = default;
  virtual Status Run(ir::Node* node) = 0;
  // What a Var owns, so that its value stays.
  virtual std::shared_ptr<const void> Hold(ir::Value* value) = 0;
  virtual void Fail(const Status& status) = 0;  // ends the process
};

// Ends the process with the error.
[[noreturn]] void EndProcess(const Status& status);

// Error unless letters, digits and '_' in parts joined by '.'. `what` is for the message: "input".
Status CheckName(std::string_view what, std::string_view name);

class Trace {
 public:
  // The `variable` node of each parameter and buffer used so far in the graph, by Variable::id().
  using Variables = std::unordered_map<int64_t, ir::Value*>;

  // Is the thread's current trace until its destruction.
  Trace(ir::Graph* graph, ir::Section* section, Variables* variables, NodeRunner* runner = nullptr);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  static Trace* Current();  // null while nothing is traced
  // The current one, for what only means something while a graph is traced; while none is, ends the
  // process with an error that names `caller`: "relu", "module 'blocks.0'".
  static Trace& Of(std::string_view caller);

  // One node named after scope and op; its first output. Errors: an input that is empty or of
  // another trace, and those of the op.
  Var Append(const std::string& op, const std::vector<Var>& inputs, ir::Attributes attributes = {},
             const std::string& name = "");
  // All its outputs; none after an error.
  std::vector<Var> AppendAll(const std::string& op, const std::vector<Var>& inputs,
                             ir::Attributes attributes = {}, const std::string& name = "");
  Var Read(const Variable& variable);        // makes the variable at the first use
  Status CheckUsable(const Var& var) const;  // not empty, and of this trace

  // Of nodes that were appended through builder(): runs those from the section's node `first` on,
  // where nodes run at once, and returns all their results, so that the values stay.
  std::vector<Var> RunFrom(size_t first);
  Var Hold(ir::Value* value) const;  // a value of this trace as a Var

  Var Fail(const Status& status);  // keeps the first, with the scope; returns an empty Var
  const Status& status() const { return builder_.status(); }

  bool training() const { return training_; }
  void set_training(bool training) { training_ = training; }
  int64_t NextStream();  // a random stream of its own: by scope, and order within it
  void RestartStreams() { num_streams_.clear(); }  // another step draws from the same
  ir::Builder& builder() { return builder_; }

 private:
  ir::Builder builder_;
  NodeRunner* runner_;
  bool training_;
  Variables* variables_;
  Trace* previous_;
  int64_t id_;
  std::map<std::string, uint64_t> num_streams_;  // taken so far, by scope
};

}  // namespace zg::nn
