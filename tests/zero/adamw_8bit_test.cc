// AdamW with 8-bit states: which tensors have them, and every bit, follows from the whole tensor,
// so the result depends on neither the stage nor the number of ranks. A tensor of 6144 elements, of
// which each of two ranks has 3072, would get different states if the rank's part decided.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"
#include "zero/zerograph/make_trainer.h"

namespace zg::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr int64_t kInputs = 64, kOutputs = 96;  // 6144 weights
constexpr int64_t kMicroBatches = 4;

struct Result {
  NamedValues parameters;
  NamedValues states;
  std::map<std::string, std::string> types;  // of the tensors of the optimizer's state
};

// Five steps of one layer; returns the result of rank 0.
StatusOr<Result> TrainLayer(const optim::Optimizer& optimizer, int ranks, int stage) {
  RegisterAllOps();
  Result result;
  ZG_RETURN_IF_ERROR(RunRanks(ranks, [&](Communicator& communicator) -> Status {
    nn::Module root;
    nn::Linear layer(&root, "layer", kInputs, kOutputs);
    Graph graph("layer");
    graph.train(optimizer, [&](Inputs& in) {
      return mse_loss(layer(in.f32("x", {2, kInputs})), in.f32("y", {2, kOutputs}));
    });
    graph.config().zero.stage = stage;
    graph.config().micro_batches = kMicroBatches;
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator));
    std::vector<float> x(2 * kInputs), y(2 * kOutputs);
    for (int step = 0; step < 5; ++step) {
      ZG_RETURN_IF_ERROR(trainer
                             ->step([&](int64_t micro_batch) {
                               const auto shift = 5 * step + static_cast<int>(micro_batch);
                               for (size_t i = 0; i < x.size(); ++i) {
                                 x[i] = std::sin(static_cast<float>(7 * i + shift));
                               }
                               for (size_t i = 0; i < y.size(); ++i) {
                                 y[i] = std::cos(static_cast<float>(3 * i + shift));
                               }
                               return trainer->feed({{"x", x}, {"y", y}});
                             })
                             .status());
    }
    ZG_ASSIGN_OR_RETURN(NamedValues parameters, trainer->consolidate_parameters());
    ZG_ASSIGN_OR_RETURN(OptimizerState state, trainer->consolidate_optimizer_state());
    if (communicator.rank() != 0) return Status::Ok();
    result.parameters = std::move(parameters);
    result.states = std::move(state.tensors);
    for (const ir::StoredTensor& tensor : trainer->executor().graph().tensors()) {
      if (!ir::HasRole(*tensor.storage, Role::kOptimizerState)) continue;
      result.types[tensor.name] = tensor.type.ToString();
    }
    return Status::Ok();
  }));
  return result;
}

TEST(AdamW8bit, SixThousandElementsHaveTheSameBitsOnOneAndTwoRanks) {
  const StatusOr<Result> expected = TrainLayer(optim::AdamW8bit{}, 1, 0);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  EXPECT_THAT(expected->types, ElementsAre(Pair("layer.bias.exp_avg", "f32[96]"),
                                           Pair("layer.bias.exp_avg_sq", "f32[96]"),
                                           Pair("layer.weight.exp_avg", "u8[96,64]"),
                                           Pair("layer.weight.exp_avg_scale", "f32[24]"),
                                           Pair("layer.weight.exp_avg_sq", "u8[96,64]"),
                                           Pair("layer.weight.exp_avg_sq_scale", "f32[24]")));
  for (const auto& [ranks, stage] : {std::pair(2, 0), std::pair(2, 1), std::pair(2, 2),
                                     std::pair(2, 3), std::pair(4, 2), std::pair(4, 3)}) {
    SCOPED_TRACE(fmt::format("{} ranks, stage {}", ranks, stage));
    const StatusOr<Result> result = TrainLayer(optim::AdamW8bit{}, ranks, stage);
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->types, expected->types);
    for (const auto& [name, values] : expected->parameters) {
      EXPECT_EQ(result->parameters.at(name).values, values.values) << name;
    }
    for (const auto& [name, values] : expected->states) {
      EXPECT_EQ(result->states.at(name).values, values.values) << name;
    }
  }
}

// A step is at most about lr, and 8 bits lose little of it.
TEST(AdamW8bit, StaysNearAdamW) {
  const optim::AdamW adamw = {.lr = 0.01};
  const StatusOr<Result> exact = TrainLayer(adamw, 1, 0);
  const StatusOr<Result> result = TrainLayer(optim::AdamW8bit{.lr = 0.01}, 1, 0);
  ASSERT_TRUE(exact.ok() && result.ok());
  const std::vector<float>& a = exact->parameters.at("layer.weight").values;
  const std::vector<float>& b = result->parameters.at("layer.weight").values;
  double sum = 0;
  bool differs = false;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += std::abs(a[i] - b[i]);
    differs = differs || a[i] != b[i];
  }
  EXPECT_TRUE(differs);
  EXPECT_LT(sum / static_cast<double>(a.size()), 5 * 0.01 / 20);  // for five steps
}

struct Setting {
  std::string name;
  TestModel model;
  DType dtype = DType::kF32;
  Partition partition = Partition::kEven;
};

class AdamW8bitTest : public ::testing::TestWithParam<Setting> {
 protected:
  static RunConfig Config() {
    RunConfig config;
    config.model = GetParam().model;
    config.dtype = GetParam().dtype;
    config.partition = GetParam().partition;
    config.optimizer = optim::AdamW8bit{.lr = 0.01, .min_elements = 300};
    config.micro_batches = 12;
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Settings, AdamW8bitTest,
    ::testing::Values(Setting{"mlp", TestModel::kMlp}, Setting{"gpt", TestModel::kGpt},
                      Setting{"gpt_bf16", TestModel::kGpt, DType::kBF16},
                      Setting{"mlp_owned", TestModel::kMlp, DType::kF32, Partition::kBalanced}),
    [](const auto& info) { return info.param.name; });

TEST_P(AdamW8bitTest, HasTheSameBitsAtEveryStageOnAnyNumberOfRanks) {
  const RunConfig config = Config();
  ExpectSameOnRanks({1, 2, 3, 4}, config, TrainOrDie(config));
}

TEST_P(AdamW8bitTest, GoesOnFromACheckpointOnOtherRanks) {
  RunConfig config = Config();
  config.steps = 4;
  const RunResult expected = TrainOrDie(config);
  const std::filesystem::path directory =
      std::filesystem::path(::testing::TempDir()) / ("adamw_8bit_" + GetParam().name);
  config.ranks = 3;
  config.stage = 2;
  config.steps = 2;
  config.save = directory;
  TrainOrDie(config);
  config.save = "";
  config.resume = directory;
  config.steps = 4;
  for (const auto& [ranks, stage] : {std::pair(1, 0), std::pair(2, 3), std::pair(4, 1)}) {
    SCOPED_TRACE(fmt::format("{} ranks, stage {}", ranks, stage));
    config.ranks = ranks;
    config.stage = stage;
    const RunResult result = TrainOrDie(config);
    EXPECT_EQ(result.param_sha256, expected.param_sha256);
    EXPECT_EQ(result.optimizer_sha256, expected.optimizer_sha256);
  }
}

// A rule that splits a parameter would cut its blocks.
TEST(AdamW8bit, RejectsWhatIsSplit) {
  RunConfig config;
  config.ranks = 2;
  config.mesh = {{"tensor", 2}};
  config.model = TestModel::kGpt;
  config.optimizer = optim::AdamW8bit{.min_elements = 0};
  config.placement = {{"blocks.*.mlp.expand", "tensor", Sbp::S(0)},
                      {"blocks.*.mlp.contract.weight", "tensor", Sbp::S(1)}};
  const StatusOr<RunResult> result = Train(config);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.status().message(), HasSubstr("looks at the whole tensor, not at its parts"));
}

}  // namespace
}  // namespace zg::testing
