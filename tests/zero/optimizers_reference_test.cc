// A hundred steps of the optimizers other than Sgd, Adam and AdamW give PyTorch's weights
// (tests/reference/make_optimizers.py) within 1e-6, and eval programs give the results of averaged
// weights, on 1, 2 and 3 ranks.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using Json = nlohmann::json;

constexpr double kTolerance = 1e-6;

optim::Optimizer OptimizerOf(const std::string& name) {
  if (name == "rmsprop") {
    return optim::RmsProp{.lr = 0.002, .alpha = 0.95, .epsilon = 1e-8, .weight_decay = 0.1};
  }
  if (name == "rmsprop_centered") {
    return optim::RmsProp{
        .lr = 0.001, .alpha = 0.9, .epsilon = 1e-2, .momentum = 0.8, .centered = true};
  }
  if (name == "adagrad") {
    return optim::Adagrad{.lr = 0.02, .lr_decay = 0.01, .epsilon = 1e-10, .weight_decay = 0.1};
  }
  if (name == "lion") return optim::Lion{.lr = 0.001, .weight_decay = 0.1};
  if (name == "lion_without_decay") {
    return optim::Lion{.lr = 0.002, .beta1 = 0.8, .beta2 = 0.95};
  }
  if (name == "schedule_free") {
    return optim::ScheduleFreeAdamW{
        .lr = 0.005, .beta2 = 0.99, .weight_decay = 0.1, .warmup_steps = 20};
  }
  if (name == "schedule_free_without_warmup") {
    return optim::ScheduleFreeAdamW{.lr = 0.002, .beta1 = 0.95};
  }
  if (name == "adamw_ema") {
    return optim::with_ema(
        optim::rule_of(optim::AdamW{.lr = 0.005, .beta2 = 0.99, .weight_decay = 0.1}), 0.9);
  }
  if (name == "lamb") {
    return optim::Lamb{.lr = 0.01, .beta2 = 0.99, .epsilon = 1e-6, .weight_decay = 0.1};
  }
  if (name == "lamb_without_decay") {
    return optim::Lamb{.lr = 0.005, .beta1 = 0.8, .weight_decay = 0.0};
  }
  if (name == "adafactor") return optim::Adafactor{.lr = 0.02};
  if (name == "adafactor_with_decay") {
    return optim::Adafactor{.lr = 0.25, .beta2_decay = -0.6, .epsilon2 = 0.05, .weight_decay = 0.1};
  }
  if (name == "sgd_rule") {
    return optim::rule_of(
        optim::Sgd{.lr = 0.02, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true});
  }
  if (name == "adam_rule") {
    return optim::rule_of(optim::Adam{
        .lr = 0.002, .beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-6, .weight_decay = 0.1});
  }
  if (name == "adadelta") {
    return optim::Adadelta{.lr = 0.5, .rho = 0.8, .epsilon = 1e-5, .weight_decay = 0.1};
  }
  if (name == "adamax") {
    return optim::Adamax{
        .lr = 0.002, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-6, .weight_decay = 0.1};
  }
  if (name == "radam") {
    return optim::RAdam{
        .lr = 0.002, .beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-6, .weight_decay = 0.1};
  }
  if (name == "radam_decoupled") {
    return optim::RAdam{
        .lr = 0.002, .beta2 = 0.99, .epsilon = 1e-6, .weight_decay = 0.1, .decoupled = true};
  }
  ADD_FAILURE() << "no optimizer " << name;
  return optim::Sgd{};
}

struct Layout {
  int ranks = 1;
  int stage = 0;
};

struct Trained {
  std::vector<std::vector<float>> weights;  // followed by the biases, after each step
  std::vector<float> outputs;               // of the layer at the end, in an eval program
};

// The result of rank 0.
StatusOr<Trained> Train(const Json& reference, const std::string& name, const Layout& layout,
                        int steps) {
  RegisterAllOps();
  const int64_t inputs = reference["inputs"];
  const int64_t outputs = reference["outputs"];
  const int64_t samples = reference["samples"].get<int64_t>() / layout.ranks;
  Trained trained;
  ZG_RETURN_IF_ERROR(RunRanks(layout.ranks, [&](Communicator& communicator) -> Status {
    nn::Module root;
    nn::Linear layer(&root, "layer", inputs, outputs);
    Graph graph("optimizers");
    graph.train(OptimizerOf(name), [&](Inputs& in) {
      return mse_loss(layer(in.f32("x", {samples, inputs})), in.f32("y", {samples, outputs}));
    });
    graph.eval("apply", [&](Inputs& in) { return layer(in.f32("x", {samples, inputs})); });
    graph.config().zero.stage = layout.stage;
    graph.config().micro_batches = layout.ranks;
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator));
    NamedValues initial;
    initial["layer.weight"] = WholeTensor(Shape{outputs, inputs}, reference["weight"]);
    initial["layer.bias"] = WholeTensor(Shape{outputs}, reference["bias"]);
    ZG_RETURN_IF_ERROR(trainer->scatter_parameters(initial));
    const std::vector<float> all_x = reference["x"];
    const std::vector<float> all_y = reference["y"];
    const auto mine = [&](const std::vector<float>& all) {
      const auto part = static_cast<int64_t>(all.size()) / layout.ranks;
      const auto begin = all.begin() + communicator.rank() * part;
      return std::vector<float>(begin, begin + part);
    };
    const std::vector<float> x = mine(all_x);
    const std::vector<float> y = mine(all_y);
    for (int step = 1; step <= steps; ++step) {
      ZG_RETURN_IF_ERROR(trainer->step({{"x", x}, {"y", y}}).status());
      ZG_ASSIGN_OR_RETURN(NamedValues after, trainer->consolidate_parameters());
      if (communicator.rank() != 0) continue;
      std::vector<float> values = after["layer.weight"].values;
      const std::vector<float>& bias = after["layer.bias"].values;
      values.insert(values.end(), bias.begin(), bias.end());
      trained.weights.push_back(std::move(values));
    }
    ZG_RETURN_IF_ERROR(trainer->eval("apply", {{"x", x}}));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> result, trainer->result("apply"));
    if (communicator.rank() == 0) trained.outputs = result;
    return Status::Ok();
  }));
  return trained;
}

template <typename Values>
double WorstDifference(const std::vector<float>& got, const Values& expected) {
  EXPECT_EQ(got.size(), expected.size());
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, std::abs(got[i] - expected[i].template get<double>()));
  }
  return worst;
}

TEST(OptimizersReference, HundredStepsAreThoseOfPyTorch) {
  std::ifstream file("tests/reference/optimizers.json");
  const Json reference = Json::parse(file);
  for (const Json& run : reference["runs"]) {
    for (const Layout& layout : {Layout{1, 0}, Layout{2, 2}, Layout{3, 3}}) {
      SCOPED_TRACE(fmt::format("{} on {} ranks at stage {}", run["name"].get<std::string>(),
                               layout.ranks, layout.stage));
      const auto trained = Train(reference, run["name"], layout, 100);
      ASSERT_TRUE(trained.ok()) << trained.status().message();
      for (const auto& [step, expected] : run["weights"].items()) {
        EXPECT_LT(WorstDifference(trained->weights[std::stoi(step) - 1], expected), kTolerance)
            << "step " << step;
      }
      if (run.contains("outputs")) {  // sums of five products
        EXPECT_LT(WorstDifference(trained->outputs, run["outputs"]), 5 * kTolerance);
      }
    }
  }
}

}  // namespace
}  // namespace zg
