// Clipping by the global norm: the norm and everything that depends on it have the same bits at
// every stage, number of ranks and bucket size, and the plan equals the measurement.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

constexpr const char* kModelNames[] = {"mlp", "classifier", "gpt"};

class ClipGradientsTest : public ::testing::TestWithParam<TestModel> {
 protected:
  // Some steps are clipped, and by different factors.
  static RunConfig Config() {
    RunConfig config;
    config.model = GetParam();
    config.micro_batches = 12;
    config.max_grad_norm = 0.1;
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(Models, ClipGradientsTest,
                         ::testing::Values(TestModel::kMlp, TestModel::kClassifier,
                                           TestModel::kGpt),
                         [](const auto& info) {
                           return kModelNames[static_cast<int>(info.param)];
                         });

TEST_P(ClipGradientsTest, SameBitsAtEveryStageAndNumberOfRanks) {
  RunConfig config = Config();
  const RunResult expected = TrainOrDie(config);
  ASSERT_EQ(expected.grad_norms.size(), static_cast<size_t>(config.steps));
  EXPECT_GT(*std::min_element(expected.grad_norms.begin(), expected.grad_norms.end()), 0.1);
  ExpectSameOnRanks({1, 2, 3, 4}, config, expected);
}

// Without accumulation: at stage 0 and for replicated buckets the gradients are pending sums.
TEST_P(ClipGradientsTest, OneMicroBatchPerRank) {
  for (int ranks : {2, 3}) {
    RunConfig config = Config();
    config.micro_batches = ranks;
    const RunResult expected = TrainOrDie(config);
    config.ranks = ranks;
    for (int stage : {0, 1, 2, 3}) {
      for (int64_t shard_min_elements : {0, 30}) {
        SCOPED_TRACE(
            fmt::format("{} ranks, stage {}, from {} elements", ranks, stage, shard_min_elements));
        config.stage = stage;
        config.shard_min_elements = shard_min_elements;
        const RunResult result = TrainOrDie(config);
        ExpectSameBits(expected, result);
        ExpectPlanIsMeasured(result, config.steps);
      }
    }
  }
}

TEST_P(ClipGradientsTest, BucketSizeAndReplicatedTensorsChangeNoBit) {
  RunConfig config = Config();
  config.ranks = 3;
  const RunResult expected = TrainOrDie(config);
  for (int stage : {0, 2, 3}) {
    for (int64_t bucket_bytes : {1, 700, 1 << 20}) {
      for (int64_t shard_min_elements : {0, 30, 1 << 20}) {
        SCOPED_TRACE(fmt::format("stage {}, buckets of {} bytes, {} elements", stage, bucket_bytes,
                                 shard_min_elements));
        config.stage = stage;
        config.bucket_bytes = bucket_bytes;
        config.shard_min_elements = shard_min_elements;
        const RunResult result = TrainOrDie(config);
        ExpectSameBits(expected, result);
        ExpectPlanIsMeasured(result, config.steps);
      }
    }
  }
}

TEST_P(ClipGradientsTest, ALargeBoundChangesNothingButShowsTheNorm) {
  RunConfig config = Config();
  config.ranks = 2;
  config.stage = 2;
  config.max_grad_norm = 1e6;
  const RunResult clipped = TrainOrDie(config);
  config.max_grad_norm = 0;
  const RunResult plain = TrainOrDie(config);
  EXPECT_TRUE(plain.grad_norms.empty());
  EXPECT_EQ(clipped.grad_norms.size(), static_cast<size_t>(config.steps));
  EXPECT_EQ(clipped.losses, plain.losses);
  EXPECT_EQ(clipped.param_sha256, plain.param_sha256);
  EXPECT_EQ(clipped.optimizer_sha256, plain.optimizer_sha256);
}

TEST_P(ClipGradientsTest, ASmallBoundChangesTheParameters) {
  RunConfig config = Config();
  const RunResult clipped = TrainOrDie(config);
  config.max_grad_norm = 0;
  EXPECT_NE(clipped.param_sha256, TrainOrDie(config).param_sha256);
}

}  // namespace
}  // namespace zg::testing
