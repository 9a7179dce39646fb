// Graph: a model's programs over one set of parameters: how it trains, and any number of ways
// to evaluate it. Nothing in it knows ranks, collectives or ZeRO stages.
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
// The functions run once, inside train() and eval(), and are traced: what they compute with Vars
// becomes nodes of the graph. An error in them does not throw: the graph keeps the first one, and
// calls after it do nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ir/graph.h"
#include "framework/nn/inputs.h"
#include "framework/nn/outputs.h"
#include "framework/nn/parameter.h"
#include "framework/nn/trace.h"
#include "framework/nn/var.h"
#include "framework/optim/optimizer.h"
#include "framework/passes/compile_options.h"

namespace zg {

class Graph {
 public:
  explicit Graph(const std::string& name);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // The training program: `build` returns the loss of one micro-batch, a f32 scalar. Once.
  void train(const optim::Optimizer& optimizer, const std::function<Var(Inputs&)>& build);

  // A program without an update, run on request. A scalar result (a loss) is the mean over the
  // micro-batches of all ranks; other results are those of all ranks side by side.
  void eval(const std::string& name, const std::function<Outputs(Inputs&)>& build);

  const std::string& name() const { return ir_.name(); }

  // How it is compiled unless the compiler is given other options.
  CompileOptions& config() { return config_; }
  const CompileOptions& config() const { return config_; }

  // The first error, with the path of the module in which it occurred.
  const Status& status() const { return status_; }

  // What train() and eval() used so far, in the order of the first use.
  std::vector<NamedParameter> named_parameters() const;
  int64_t num_parameters() const;  // elements of them all

  // The type of an eval's result for one micro-batch. Errors: no such eval or result.
  StatusOr<TensorType> result_type(std::string_view eval, std::string_view result) const;

  // For the compiler. Errors: status(), a graph without programs.
  Status check() const;
  const ir::Graph& ir() const { return ir_; }  // one rank's, of one micro-batch
  const std::optional<optim::Optimizer>& optimizer() const { return optimizer_; }  // once train ran

 private:
  struct Eval {
    std::string name;
    std::vector<std::pair<std::string, TensorType>> results;
  };

  // Runs `trace` unless there is an error already, and keeps its error.
  void Run(const std::string& program, const std::function<Status()>& trace);
  Status TraceTrain(const optim::Optimizer& optimizer, const std::function<Var(Inputs&)>& build);
  Status TraceEval(const std::string& name, const std::function<Outputs(Inputs&)>& build);

  ir::Graph ir_;
  nn::Trace::Variables variables_;
  std::optional<optim::Optimizer> optimizer_;
  std::vector<Eval> evals_;
  CompileOptions config_;
  Status status_;
  std::string running_;  // the program being traced
};

}  // namespace zg
