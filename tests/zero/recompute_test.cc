// Recomputation changes no bit, at any stage and number of ranks; it saves activations, adds no
// traffic, and its plan equals the measurement.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

constexpr int kActivations = static_cast<int>(MemoryCategory::kActivations);

RunConfig Gpt(int ranks, int stage) {
  RunConfig config;
  config.model = TestModel::kGpt;  // with dropout
  config.ranks = ranks;
  config.stage = stage;
  config.micro_batches = 6;
  return config;
}

TEST(RecomputeTest, ChangesNoBit) {
  const RunResult expected = TrainOrDie(Gpt(1, 0));
  for (int ranks : {1, 2, 3}) {
    for (int stage : {0, 1, 2, 3}) {
      // A segment per block; two per block; each outermost module.
      for (const char* modules : {"blocks.*", "blocks.*.mlp,blocks.*.attention", "*"}) {
        SCOPED_TRACE(fmt::format("{} ranks, stage {}, {}", ranks, stage, modules));
        RunConfig config = Gpt(ranks, stage);
        config.recompute = modules;
        const RunResult result = TrainOrDie(config);
        ExpectSameBits(expected, result);
        ExpectPlanIsMeasured(result, config.steps);
      }
    }
  }
}

TEST(RecomputeTest, OtherModels) {
  for (TestModel model : {TestModel::kMlp, TestModel::kClassifier}) {
    RunConfig config;
    config.model = model;
    config.ranks = 2;
    config.stage = 3;
    config.micro_batches = 4;
    const RunResult expected = TrainOrDie(config);
    config.recompute = "*";
    const RunResult result = TrainOrDie(config);
    ExpectSameBits(expected, result);
    ExpectPlanIsMeasured(result, config.steps);
  }
}

TEST(RecomputeTest, SavesActivations) {
  for (int stage : {0, 3}) {
    RunConfig config = Gpt(2, stage);
    const RunResult kept = TrainOrDie(config);
    config.recompute = "blocks.*";
    const RunResult again = TrainOrDie(config);
    // Two blocks: the activations of one of them are gone.
    EXPECT_LT(again.measured[kActivations], 0.8 * kept.measured[kActivations]) << stage;
    EXPECT_LE(again.measured_peak, kept.measured_peak) << stage;
  }
}

// At stage 3 a bucket is gathered once for recomputation and gradients together.
TEST(RecomputeTest, MovesNoByteMore) {
  for (int stage : {0, 1, 2, 3}) {
    RunConfig config = Gpt(2, stage);
    config.bucket_bytes = 12000;  // a few per block, each with a weight that backward reads
    const RunResult kept = TrainOrDie(config);
    config.recompute = "blocks.*";
    const RunResult again = TrainOrDie(config);
    for (int i = 0; i < kNumCollectiveKinds; ++i) {
      EXPECT_EQ(kept.measured_traffic[i].count, again.measured_traffic[i].count) << stage;
      EXPECT_EQ(kept.measured_traffic[i].bytes, again.measured_traffic[i].bytes) << stage;
    }
  }
}

// Backward does not need a bias, but the recomputed layer does: a bucket with only biases is
// gathered for it.
TEST(RecomputeTest, GathersABucketThatOnlyCopiesRead) {
  RunConfig config = Gpt(2, 3);
  config.bucket_bytes = 1;  // one per parameter
  const RunResult kept = TrainOrDie(config);
  config.recompute = "blocks.*.mlp";
  const RunResult again = TrainOrDie(config);
  const int all_gather = static_cast<int>(CollectiveKind::kAllGather);
  // In each of two blocks the bias of `expand`, at 3 micro-batches per rank.
  EXPECT_EQ(again.measured_traffic[all_gather].count - kept.measured_traffic[all_gather].count,
            2 * 3 * config.steps);
  ExpectSameBits(kept, again);
  ExpectPlanIsMeasured(again, config.steps);
}

TEST(RecomputeTest, APatternThatMatchesNothingIsAnError) {
  RunConfig config = Gpt(2, 2);
  config.recompute = "layers.*";
  EXPECT_EQ(Train(config).status().message(),
            "recompute: the pattern 'layers.*' matches no module; there are: blocks.0, blocks.1");
}

}  // namespace
}  // namespace zg::testing
