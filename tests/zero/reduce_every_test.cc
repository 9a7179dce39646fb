// Gradients that are summed over the ranks once per step: the same bits at every stage, fewer
// bytes, full-size accumulators, and a plan that equals the measurement.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

constexpr const char* kModelNames[] = {"mlp", "classifier", "gpt"};

// Sent by one rank, in all steps.
int64_t Sent(const RunResult& result) {
  int64_t bytes = 0;
  for (const Traffic& traffic : result.measured_traffic) bytes += traffic.bytes;
  return bytes;
}

class ReduceEveryTest : public ::testing::TestWithParam<TestModel> {
 protected:
  // Four micro-batches per rank.
  static RunConfig Config(int ranks, ReduceEvery reduce_every) {
    RunConfig config;
    config.model = GetParam();
    config.ranks = ranks;
    config.micro_batches = 4 * ranks;
    config.reduce_every = reduce_every;
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(Models, ReduceEveryTest,
                         ::testing::Values(TestModel::kMlp, TestModel::kClassifier,
                                           TestModel::kGpt),
                         [](const auto& info) {
                           return kModelNames[static_cast<int>(info.param)];
                         });

TEST_P(ReduceEveryTest, StepHasTheSameBitsAtEveryStage) {
  for (int ranks : {1, 2, 3, 4}) {
    RunConfig config = Config(ranks, ReduceEvery::kStep);
    const RunResult expected = TrainOrDie(config);
    ASSERT_EQ(expected.losses.size(), static_cast<size_t>(config.steps));
    for (int stage : {0, 1, 2, 3}) {
      for (int64_t shard_min_elements : {0, 30}) {
        SCOPED_TRACE(fmt::format("{} ranks, stage {}, {}", ranks, stage, shard_min_elements));
        config.stage = stage;
        config.shard_min_elements = shard_min_elements;
        const RunResult result = TrainOrDie(config);
        ExpectSameBits(expected, result);
        ExpectPlanIsMeasured(result, config.steps);
      }
    }
  }
}

TEST_P(ReduceEveryTest, StepReducesOnce) {
  constexpr int kGradients = static_cast<int>(MemoryCategory::kGradients);
  const int64_t gradient_bytes = TrainOrDie(Config(2, ReduceEvery::kStep)).measured[kGradients];
  for (int stage : {0, 1, 2, 3}) {
    SCOPED_TRACE(stage);
    RunConfig config = Config(2, ReduceEvery::kMicroBatch);
    config.stage = stage;
    const RunResult often = TrainOrDie(config);
    config.reduce_every = ReduceEvery::kStep;
    const RunResult once = TrainOrDie(config);
    EXPECT_LT(Sent(once), Sent(often));
    // The price is a full-size accumulator, where the other mode has a rank's part.
    EXPECT_EQ(once.measured[kGradients], gradient_bytes);
    if (stage >= 2) {
      EXPECT_GE(once.measured[kGradients], 2 * often.measured[kGradients]);
    }
    if (stage == 0) continue;  // its reduction is combined with the gathering of the sum
    constexpr int kReduceScatter = static_cast<int>(CollectiveKind::kReduceScatter);
    EXPECT_EQ(4 * once.measured_traffic[kReduceScatter].count,
              often.measured_traffic[kReduceScatter].count);
    EXPECT_EQ(4 * once.measured_traffic[kReduceScatter].bytes,
              often.measured_traffic[kReduceScatter].bytes);
  }
}

TEST_P(ReduceEveryTest, OneMicroBatchPerRankIsTheSameProgram) {
  for (int ranks : {1, 3}) {
    for (int stage : {0, 2, 3}) {
      RunConfig config = Config(ranks, ReduceEvery::kMicroBatch);
      config.micro_batches = ranks;
      config.stage = stage;
      const RunResult expected = TrainOrDie(config);
      config.reduce_every = ReduceEvery::kStep;
      EXPECT_EQ(TrainOrDie(config).ir, expected.ir);
    }
  }
}

}  // namespace
}  // namespace zg::testing
