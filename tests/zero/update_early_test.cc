// Updates in backward: the same bits as updates after it, and less memory, as the plan says.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

constexpr int kGradients = static_cast<int>(MemoryCategory::kGradients);

class UpdateEarlyTest : public ::testing::TestWithParam<DType> {};

INSTANTIATE_TEST_SUITE_P(DTypes, UpdateEarlyTest, ::testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& info) { return std::string(DTypeName(info.param)); });

TEST_P(UpdateEarlyTest, ChangesNoBitAtAnyStage) {
  for (const TestModel model : {TestModel::kMlp, TestModel::kClassifier, TestModel::kGpt}) {
    for (const int ranks : {1, 2, 3}) {
      for (const int stage : {0, 1, 2, 3}) {
        for (const std::string& recompute :
             {std::string(), std::string(model == TestModel::kGpt ? "blocks.*" : "")}) {
          SCOPED_TRACE(fmt::format("{} ranks, stage {}, recompute '{}'", ranks, stage, recompute));
          RunConfig config;
          config.model = model;
          config.dtype = GetParam();
          config.ranks = ranks;
          config.micro_batches = ranks;
          config.stage = stage;
          config.recompute = recompute;
          config.bucket_bytes = 700;
          config.shard_min_elements = 30;
          const RunResult late = TrainOrDie(config);
          config.update_early = true;
          const RunResult early = TrainOrDie(config);
          ExpectSameBits(late, early);
          EXPECT_EQ(late.eval_loss, early.eval_loss);
          ExpectPlanIsMeasured(early, config.steps);
          EXPECT_LT(early.predicted[kGradients], late.predicted[kGradients]);
          // The search for offsets is a heuristic: that of less may end a little higher.
          EXPECT_LE(early.predicted_peak, late.predicted_peak + late.predicted_peak / 200);
        }
      }
    }
  }
}

TEST(UpdateEarly, RefusesWhatNeedsAllGradientsFirst) {
  RunConfig config;
  config.update_early = true;
  const auto message = [&] { return Train(config).status().message(); };
  config.micro_batches = 2;
  EXPECT_NE(message().find("every rank computes 2 micro-batches per step"), std::string::npos);
  config.micro_batches = 1;
  config.max_grad_norm = 1;
  EXPECT_NE(message().find("max_grad_norm needs all gradients"), std::string::npos);
  config.max_grad_norm = 0;
  config.dtype = DType::kF16;
  EXPECT_NE(message().find("the loss scaling of f16 needs all gradients"), std::string::npos);
}

}  // namespace
}  // namespace zg::testing
