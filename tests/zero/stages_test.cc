// The first two promises: the same bits at every stage and number of ranks, and a plan that equals
// the measurement.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/zero/training.h"

namespace zg::testing {
namespace {

constexpr const char* kModelNames[] = {"mlp", "classifier", "gpt"};

RunResult TrainOrDie(const RunConfig& config) {
  StatusOr<RunResult> result = Train(config);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : RunResult();
}

void ExpectSameBits(const RunResult& a, const RunResult& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.param_sha256, b.param_sha256);
  EXPECT_EQ(a.optimizer_sha256, b.optimizer_sha256);
}

void ExpectPlanIsMeasured(const RunResult& result, int steps) {
  for (int i = 0; i < kNumMemoryCategories; ++i) {
    EXPECT_EQ(result.predicted[i], result.measured[i])
        << MemoryCategoryName(static_cast<MemoryCategory>(i));
  }
  EXPECT_EQ(result.predicted_peak, result.measured_peak);
  for (int i = 0; i < kNumCollectiveKinds; ++i) {
    const auto predicted =
        result.predicted_traffic.find(std::string(CollectiveName(static_cast<CollectiveKind>(i))));
    const PredictedTraffic expected =
        predicted == result.predicted_traffic.end() ? PredictedTraffic() : predicted->second;
    EXPECT_EQ(expected.count * steps, result.measured_traffic[i].count)
        << CollectiveName(static_cast<CollectiveKind>(i));
    EXPECT_EQ(expected.bytes * steps, result.measured_traffic[i].bytes)
        << CollectiveName(static_cast<CollectiveKind>(i));
  }
}

class StagesTest : public ::testing::TestWithParam<TestModel> {};

INSTANTIATE_TEST_SUITE_P(
    Models, StagesTest, ::testing::Values(TestModel::kMlp, TestModel::kClassifier, TestModel::kGpt),
    [](const auto& info) { return kModelNames[static_cast<int>(info.param)]; });

TEST_P(StagesTest, SameBitsAtEveryStageAndNumberOfRanks) {
  RunConfig config;
  config.model = GetParam();
  config.micro_batches = 12;
  const RunResult expected = TrainOrDie(config);
  ASSERT_EQ(expected.losses.size(), static_cast<size_t>(config.steps));
  for (int ranks : {1, 2, 3, 4}) {
    for (int stage : {0, 1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{} ranks, stage {}", ranks, stage));
      config.ranks = ranks;
      config.stage = stage;
      const RunResult result = TrainOrDie(config);
      ExpectSameBits(expected, result);
      ExpectPlanIsMeasured(result, config.steps);
    }
  }
}

TEST_P(StagesTest, OneMicroBatchPerRank) {
  for (int ranks : {2, 3}) {
    RunConfig config;
    config.model = GetParam();
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
  RunConfig config;
  config.model = GetParam();
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

TEST_P(StagesTest, EarlyUpdatesChangeNoBitAndFreeGradients) {
  for (int ranks : {1, 3}) {
    RunConfig config;
    config.model = GetParam();
    config.ranks = ranks;
    config.micro_batches = ranks;
    config.bucket_bytes = 700;
    for (int stage : {0, 1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{} ranks, stage {}", ranks, stage));
      config.stage = stage;
      config.update_early = false;
      const RunResult late = TrainOrDie(config);
      config.update_early = true;
      const RunResult early = TrainOrDie(config);
      ExpectSameBits(late, early);
      ExpectPlanIsMeasured(early, config.steps);
      EXPECT_EQ(late.eval_loss, early.eval_loss);
      constexpr int kGradients = static_cast<int>(MemoryCategory::kGradients);
      EXPECT_LT(early.predicted[kGradients], late.predicted[kGradients]);
      EXPECT_LE(early.predicted_peak, late.predicted_peak);
    }
  }
}

}  // namespace
}  // namespace zg::testing
