// The first two promises: the same bits at every stage and number of ranks, and a plan that equals
// the measurement.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tuple>

#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

constexpr const char* kModelNames[] = {"mlp", "classifier", "gpt"};

class StagesTest : public ::testing::TestWithParam<std::tuple<TestModel, DType>> {
 protected:
  static RunConfig Config() {
    RunConfig config;
    std::tie(config.model, config.dtype) = GetParam();
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Models, StagesTest,
    ::testing::Combine(::testing::Values(TestModel::kMlp, TestModel::kClassifier, TestModel::kGpt),
                       ::testing::Values(DType::kF32, DType::kBF16, DType::kF16)),
    [](const auto& info) {
      return fmt::format("{}_{}", kModelNames[static_cast<int>(std::get<0>(info.param))],
                         DTypeName(std::get<1>(info.param)));
    });

TEST_P(StagesTest, SameBitsAtEveryStageAndNumberOfRanks) {
  RunConfig config = Config();
  config.micro_batches = 12;
  const RunResult expected = TrainOrDie(config);
  ASSERT_EQ(expected.losses.size(), static_cast<size_t>(config.steps));
  ExpectSameOnRanks({1, 2, 3, 4}, config, expected);
}

TEST_P(StagesTest, OneMicroBatchPerRank) {
  for (int ranks : {2, 3}) {
    RunConfig config = Config();
    config.micro_batches = ranks;
    const RunResult expected = TrainOrDie(config);
    config.ranks = ranks;
    float eval_loss = 0;
    for (int stage : {0, 1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{} ranks, stage {}", ranks, stage));
      config.stage = stage;
      const RunResult result = TrainOrDie(config);
      ExpectSameBits(expected, result);
      ExpectPlanIsMeasured(result, config.steps);
      if (stage == 0) eval_loss = result.eval_loss;
      EXPECT_EQ(result.eval_loss, eval_loss);
    }
  }
}

TEST_P(StagesTest, BucketSizeAndReplicatedTensorsChangeNoBit) {
  RunConfig config = Config();
  config.ranks = 2;
  config.stage = 3;
  config.micro_batches = 4;
  const RunResult expected = TrainOrDie(config);
  for (int64_t bucket_bytes : {1, 700, 1 << 20}) {
    for (int64_t shard_min_elements : {0, 30}) {
      SCOPED_TRACE(
          fmt::format("buckets of {} bytes, {} elements", bucket_bytes, shard_min_elements));
      config.bucket_bytes = bucket_bytes;
      config.shard_min_elements = shard_min_elements;
      const RunResult result = TrainOrDie(config);
      ExpectSameBits(expected, result);
      ExpectPlanIsMeasured(result, config.steps);
    }
  }
}

// Enough ranks to make the sums over them long.
TEST_P(StagesTest, SixteenRanks) {
  RunConfig config = Config();
  config.micro_batches = 32;
  const RunResult expected = TrainOrDie(config);
  config.ranks = 16;
  for (int stage : {0, 3}) {
    SCOPED_TRACE(stage);
    config.stage = stage;
    const RunResult result = TrainOrDie(config);
    ExpectSameBits(expected, result);
    ExpectPlanIsMeasured(result, config.steps);
  }
}

}  // namespace
}  // namespace zg::testing
