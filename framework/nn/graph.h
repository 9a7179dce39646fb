// Graph: the programs of a model over one set of parameters: one for training and any number for
// evaluation. A graph is a description: it knows no ranks, collectives or ZeRO stages.
//
//   Classifier model;
//   zg::Graph graph("classifier");
//   graph.train(zg::optim::Sgd{1e-3}, [&](zg::Inputs& in) {
//     Var x = in.f32("x", {128, 256}), y = in.i64("y", {128});
//     return zg::cross_entropy(model(x), y);
//   });
//   graph.eval("predict", [&](zg::Inputs& in) { return model(in.f32("x", {128, 256})); });
//   graph.config().zero.stage = 2;
//
// The functions run once, inside train() and eval(), and are traced: each operation on Vars becomes
// a node of the graph. Nothing throws: the graph keeps the first error (status()), and later calls
// do nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ir/graph.h"
#include "framework/ir/variant.h"
#include "framework/nn/inputs.h"
#include "framework/nn/outputs.h"
#include "framework/nn/parameter.h"
#include "framework/nn/trace.h"
#include "framework/nn/var.h"
#include "framework/optim/optimizer.h"
#include "framework/optim/update_rules.h"
#include "framework/passes/compile_options.h"

namespace zg {

// A training function with inputs and a loss of its own, by name.
struct Phase {
  std::string name;
  std::function<Outputs(Inputs&)> build;
};

class Graph {
 public:
  explicit Graph(const std::string& name);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Adds the training program. `build` returns the loss of one micro-batch, an f32 scalar; the loss
  // of a step is the mean over its micro-batches. It may also return further results, which a step
  // hands out:
  //   return zg::Outputs{{"loss", loss}, {"logits", logits}, {"accuracy", accuracy}};
  // An f32 scalar among them is also averaged over the step's micro-batches; any other result has
  // the micro-batches' values side by side, along dim 0. Only one train() may be called. With an
  // f32 scalar "loss_weight" beside it, the loss of a step is the sum of its micro-batches' losses
  // divided by the sum of their weights; so are the gradients (weighted_mean, nn/losses.h).
  void train(const optim::Optimizer& optimizer, const std::function<Outputs(Inputs&)>& build);
  // The same for inputs of several sizes, such as texts that are padded to the longest of their
  // batch: every step runs at one of them (Trainer::set_size).
  //   graph.train(optimizer, {32, 64, 128}, [&](zg::Inputs& in, int64_t length) {
  //     Var tokens = in.i64("tokens", {8, length});
  //     ...
  // `build` runs once for each size, and later so do the functions of eval(). All must use the same
  // parameters. Sizes need only differ: what they mean is up to `build`. Plans show the largest.
  void train(const optim::Optimizer& optimizer, const std::vector<int64_t>& sizes,
             const std::function<Outputs(Inputs&, int64_t size)>& build);
  // The same for training in phases, such as the turns of a game, or a task after another: every step
  // takes the inputs and the loss of one of them (Trainer::set_phase).
  //   graph.train(optimizer, {{"critic", [&](zg::Inputs& in) { ... }},
  //                           {"generator", [&](zg::Inputs& in) { ... }}});
  //   graph.add_parameter_group({"critic", "critic.**"});
  // Phases may use different parameters. A step updates those that its loss depends on, which must be
  // all or none of a parameter group. Plans show the first phase.
  void train(const optim::Optimizer& optimizer, const std::vector<Phase>& phases);

  // Adds a program without an update, which runs on request. An f32 scalar (a loss) is averaged
  // over the micro-batches of all ranks; any other result has their values side by side, along dim
  // 0.
  void eval(const std::string& name, const std::function<Outputs(Inputs&)>& build);

  // Change which parameters are trained, and how. `parameters` are patterns of paths, joined by
  // commas (framework/ir/scope_pattern.h): "blocks.*,**.bias". Call these after train() and eval();
  // a pattern that names no parameter is an error. The trainer has the same functions for changes
  // between steps.
  //
  // Frozen parameters have no gradient and no optimizer state.
  void freeze(const std::string& parameters);
  // Unfrozen parameters begin with new optimizer state and a new count of updates; `past` steps have run
  // without them.
  void unfreeze(const std::string& parameters, const optim::PastSteps& past = {});
  // A parameter belongs to the last group that names it. Frozen parameters are unfrozen. A group
  // with an optimizer of its own begins with new state and a new count of updates.
  void add_parameter_group(const optim::ParameterGroup& group, const optim::PastSteps& past = {});
  // The trained parameters whose optimizer state is not that which they had in `before`, of which this is
  // a changed clone.
  std::set<std::string, std::less<>> NewlyTrained(const Graph& before) const;

  // Other hyperparameters of the same optimizer, of the graph or of the group of this name.
  void set_optimizer(const optim::Optimizer& optimizer, const std::string& group = "");

  const std::string& name() const { return ir_.name(); }

  // The options that the graph is compiled with by default.
  CompileOptions& config() { return config_; }
  const CompileOptions& config() const { return config_; }

  // The first error, with the path of the module that caused it.
  const Status& status() const { return status_; }

  // The parameters that train() and eval() have used so far, in the order of first use.
  std::vector<NamedParameter> named_parameters() const;
  int64_t num_parameters() const;  // total number of elements

  // The one of its sizes, or phases, that ir() is of: the largest size, or the first phase.
  const Variant& variant() const { return variant_; }
  // The same graph at the smaller sizes, ascending, or in the further phases.
  const std::vector<std::unique_ptr<Graph>>& other_variants() const { return other_variants_; }

  // The type of a result of an eval program, for one micro-batch. Error: no such program or result.
  StatusOr<TensorType> result_type(std::string_view eval, std::string_view result) const;

  // Whether the graph can be compiled. Errors: status(); a graph without programs.
  Status check() const;
  const ir::Graph& ir() const { return ir_; }  // one rank's graph, for one micro-batch
  // Set once train() was called.
  const std::optional<optim::Optimizer>& optimizer() const { return optimizer_; }
  // The update rule of each parameter, with the groups so far. Error: no training program.
  StatusOr<optim::UpdateRules> update_rules() const;

  // An equal graph, to which no further program can be added.
  std::unique_ptr<Graph> Clone() const;

 private:
  struct Eval {
    std::string name;
    std::vector<std::pair<std::string, TensorType>> results;
  };

  // Runs `trace` unless there is an error already, and keeps its error.
  void Run(const std::string& program, const std::function<Status()>& trace);
  Status TraceTrain(const optim::Optimizer& optimizer,
                    const std::function<Outputs(Inputs&)>& build);
  Status TraceSizes(const optim::Optimizer& optimizer, std::vector<int64_t> sizes,
                    const std::function<Outputs(Inputs&, int64_t size)>& build);
  Status CheckNoEvalsBefore(const char* variants) const;
  Status TracePhases(const optim::Optimizer& optimizer, const std::vector<Phase>& phases);
  // Makes the change here and in the other variants, where variables must then be the same.
  Status InEveryVariant(const std::function<Status(Graph& graph)>& change);
  StatusOr<std::vector<ir::Node*>> ParametersNamed(const std::string& patterns) const;
  // With so many updates of its group so far, of which `own` are its own.
  void SetJoined(const std::string& parameter, int64_t updates_of_group, int64_t own);
  // Changes the program "train" in every variant, from outside of its function.
  void Change(const std::string& what, const std::function<Status(Graph& graph)>& change);
  Status TraceEval(const std::string& name, const std::function<Outputs(Inputs&)>& build);

  ir::Graph ir_;
  nn::Trace::Variables variables_;
  std::optional<optim::Optimizer> optimizer_;
  std::vector<optim::ParameterGroup> groups_;
  std::map<std::string, int64_t> joined_after_;  // as in UpdateRules
  std::vector<Eval> evals_;
  CompileOptions config_;
  Variant variant_;
  std::vector<std::unique_ptr<Graph>> other_variants_;
  Status status_;
  std::string running_;  // the program being traced
};

}  // namespace zg
