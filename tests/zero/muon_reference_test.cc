// Fifty steps of Muon give the weights of torch.optim.Muon, evaluated in f32
// (tests/reference/make_muon.py), within 1e-5, on 1, 2 and 4 ranks.

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

constexpr double kTolerance = 1e-5;
constexpr int kSteps = 50;

optim::Muon MuonOf(const std::string& name) {
  const optim::AdamW of_vectors = {.lr = 0.005, .beta2 = 0.99, .weight_decay = 0.1};
  if (name == "nesterov") return {.lr = 0.02, .weight_decay = 0.1, .of_vectors = of_vectors};
  EXPECT_EQ(name, "match_rms_adamw");
  return {.lr = 0.01,
          .momentum = 0.9,
          .weight_decay = 0.05,
          .nesterov = false,
          .match_rms_adamw = true,
          .steps = 4,
          .of_vectors = of_vectors};
}

struct Network : nn::Module {
  explicit Network(const std::vector<int64_t>& widths)
      : first(this, "first", widths[0], widths[1]),
        second(this, "second", widths[1], widths[2]),
        third(this, "third", widths[2], widths[3]) {}
  Var forward(Var x) override { return third(tanh(second(tanh(first(x))))); }

  nn::Linear first, second, third;
};

constexpr const char* kLayers[] = {"first", "second", "third"};

std::string NameOf(size_t i) {  // of weights, then of biases
  return fmt::format("{}.{}", kLayers[i % 3], i < 3 ? "weight" : "bias");
}

// The parameters on rank 0 after each step.
StatusOr<std::vector<NamedValues>> Train(const Json& reference, const std::string& name, int ranks,
                                         int stage) {
  RegisterAllOps();
  const std::vector<int64_t> widths = reference["widths"];
  const int64_t samples = reference["samples"].get<int64_t>() / ranks;
  std::vector<NamedValues> after;
  ZG_RETURN_IF_ERROR(RunRanks(ranks, [&](Communicator& communicator) -> Status {
    Network network(widths);
    Graph graph("muon");
    graph.train(MuonOf(name), [&](Inputs& in) {
      return mse_loss(network(in.f32("x", {samples, widths[0]})),
                      in.f32("y", {samples, widths[3]}));
    });
    graph.config().zero.stage = stage;
    graph.config().micro_batches = ranks;
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator));
    NamedValues initial;
    for (size_t i = 0; i < 3; ++i) {
      initial[NameOf(i)] = WholeTensor(Shape{widths[i + 1], widths[i]}, reference["weights"][i]);
      initial[NameOf(i + 3)] = WholeTensor(Shape{widths[i + 1]}, reference["biases"][i]);
    }
    ZG_RETURN_IF_ERROR(trainer->scatter_parameters(initial));
    const auto mine = [&](const char* key) {
      const std::vector<float> all = reference[key];
      const auto part = static_cast<int64_t>(all.size()) / ranks;
      const auto begin = all.begin() + communicator.rank() * part;
      return std::vector<float>(begin, begin + part);
    };
    const std::vector<float> x = mine("x"), y = mine("y");
    for (int step = 1; step <= kSteps; ++step) {
      ZG_RETURN_IF_ERROR(trainer->step({{"x", x}, {"y", y}}).status());
      ZG_ASSIGN_OR_RETURN(NamedValues values, trainer->consolidate_parameters());
      if (communicator.rank() == 0) after.push_back(std::move(values));
    }
    return Status::Ok();
  }));
  return after;
}

TEST(MuonReference, FiftyStepsAreThoseOfPyTorch) {
  std::ifstream file("tests/reference/muon.json");
  const Json reference = Json::parse(file);
  for (const Json& run : reference["runs"]) {
    for (const auto& [ranks, stage] : {std::pair(1, 0), std::pair(2, 2), std::pair(4, 3)}) {
      SCOPED_TRACE(
          fmt::format("{} on {} ranks at stage {}", run["name"].get<std::string>(), ranks, stage));
      const auto after = Train(reference, run["name"], ranks, stage);
      ASSERT_TRUE(after.ok()) << after.status().message();
      for (const auto& [step, expected] : run["after"].items()) {
        for (size_t i = 0; i < expected.size(); ++i) {
          const std::vector<float>& got = (*after)[std::stoi(step) - 1].at(NameOf(i)).values;
          ASSERT_EQ(got.size(), expected[i].size());
          double worst = 0;
          for (size_t j = 0; j < got.size(); ++j) {
            worst = std::max(worst, std::abs(got[j] - expected[i][j].get<double>()));
          }
          EXPECT_LT(worst, kTolerance) << NameOf(i) << " after step " << step;
        }
      }
    }
  }
}

}  // namespace
}  // namespace zg
