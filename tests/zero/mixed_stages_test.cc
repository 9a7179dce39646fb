// A stage for each parameter, by name: every mixture has the bits of every stage, and its plan
// equals the measurement.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

struct Mixture {
  int otherwise = 0;
  std::vector<StageRule> rules;
};

const std::vector<Mixture>& MixturesOf(TestModel model) {
  static const std::vector<Mixture> gpt = {
      {0, {{"blocks.*", 3}, {"token_embedding", 1}}},
      {2, {{"blocks.*.mlp", 3}}},
      {3, {{"**.bias", 0}, {"blocks.1.mlp.*.weight", 2}}},
      {1, {{"blocks.0", 3}, {"blocks.1", 2}, {"final_norm", 0}}},
  };
  static const std::vector<Mixture> llama = {
      {2, {{"model.layers.*", 3}}},
      {3, {{"model.embed_tokens", 1}, {"lm_head", 0}}},
      {0, {{"model.layers.*.mlp", 2}, {"model.layers.*.self_attn", 1}}},
  };
  return model == TestModel::kGpt ? gpt : llama;
}

struct Setting {
  TestModel model = TestModel::kGpt;
  DType dtype = DType::kF32;
  int64_t micro_batches = 12;
  double max_grad_norm = 0;
  ReduceEvery reduce_every = ReduceEvery::kMicroBatch;
};

class MixedStagesTest : public ::testing::TestWithParam<Setting> {
 protected:
  static RunConfig Config() {
    const Setting& setting = GetParam();
    RunConfig config;
    config.model = setting.model;
    config.dtype = setting.dtype;
    config.max_grad_norm = setting.max_grad_norm;
    config.micro_batches = setting.micro_batches;
    config.reduce_every = setting.reduce_every;
    config.shard_min_elements = 20;
    config.steps = 2;
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Settings, MixedStagesTest,
    ::testing::Values(Setting{TestModel::kGpt, DType::kF32, 12, 0.5},
                      Setting{TestModel::kGpt, DType::kBF16, 12, 0.5},
                      Setting{TestModel::kGpt, DType::kF32, 12, 0.0, ReduceEvery::kStep},
                      Setting{TestModel::kLlama, DType::kF32, 12, 0.5},
                      Setting{TestModel::kLlama, DType::kBF16, 12, 0.0}),
    [](const auto& info) {
      return fmt::format("{}_{}{}{}", info.param.model == TestModel::kGpt ? "gpt" : "llama",
                         DTypeName(info.param.dtype), info.param.max_grad_norm > 0 ? "_clips" : "",
                         info.param.reduce_every == ReduceEvery::kStep ? "_every_step" : "");
    });

TEST_P(MixedStagesTest, HaveTheBitsOfOneStage) {
  RunConfig config = Config();
  const RunResult one_rank = TrainOrDie(config);
  for (const int ranks : {1, 2, 3, 4}) {
    config.ranks = ranks;
    config.stage = 0;
    config.stage_rules.clear();
    const bool depends_on_ranks = config.reduce_every == ReduceEvery::kStep;
    const RunResult expected = depends_on_ranks ? TrainOrDie(config) : one_rank;
    for (const Mixture& mixture : MixturesOf(config.model)) {
      config.stage = mixture.otherwise;
      config.stage_rules = mixture.rules;
      SCOPED_TRACE(
          fmt::format("{} ranks, {}", ranks, StagesText(mixture.otherwise, mixture.rules)));
      const RunResult result = TrainOrDie(config);
      ExpectSameBits(expected, result);
      ExpectPlanIsMeasured(result, config.steps);
    }
  }
}

TEST(MixedStages, HoldsWhatItsStagesHold) {
  RunConfig config;
  config.model = TestModel::kGpt;
  config.ranks = 4;
  config.micro_batches = 4;
  config.steps = 1;
  const auto parameters = [&](int stage, std::vector<StageRule> rules) {
    config.stage = stage;
    config.stage_rules = std::move(rules);
    return TrainOrDie(config).measured[static_cast<int>(MemoryCategory::kParameters)];
  };
  const int64_t whole = parameters(2, {});
  const int64_t sharded = parameters(3, {});
  const int64_t blocks_sharded = parameters(2, {{"blocks.*", 3}});
  const int64_t rest_sharded = parameters(3, {{"blocks.*", 2}});
  EXPECT_LT(sharded, blocks_sharded);
  EXPECT_LT(blocks_sharded, rest_sharded);  // the blocks are most of it
  EXPECT_LT(rest_sharded, whole);
  // Each part is whole in one plan and split in the other, except for the padding of buckets.
  EXPECT_NEAR(blocks_sharded + rest_sharded, whole + sharded, 2048);
}

TEST(MixedStages, OnMeshesWithSharedAxesAndUpdatesDuringBackward) {
  RunConfig config;
  config.model = TestModel::kGpt;
  config.micro_batches = 2;
  config.mesh = {{"tensor", 2}};
  config.ranks = 2;
  config.placement = {{"blocks.*.mlp.expand", "tensor", Sbp::S(0)},
                      {"blocks.*.mlp.contract.weight", "tensor", Sbp::S(1)}};
  const RunResult expected = TrainOrDie(config);
  config.mesh = {{"data", 2}, {"tensor", 2}};
  config.ranks = 4;
  config.stage = 1;
  config.stage_rules = {{"blocks.*.mlp", 3}, {"blocks.0.attention", 2}};
  for (const bool update_early : {false, true}) {
    SCOPED_TRACE(update_early);
    config.update_early = update_early;
    const RunResult result = TrainOrDie(config);
    ExpectSameBits(expected, result);
    ExpectPlanIsMeasured(result, config.steps);
  }
}

TEST(MixedStages, RefuseWhatNamesNothing) {
  RunConfig config;
  config.model = TestModel::kGpt;
  config.ranks = 2;
  config.micro_batches = 2;
  config.stage_rules = {{"block.*", 3}};
  const StatusOr<RunResult> result = Train(config);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("stage rule 'block.*=3': no parameter has this name"),
            std::string::npos)
      << result.status().message();
}

}  // namespace
}  // namespace zg::testing
