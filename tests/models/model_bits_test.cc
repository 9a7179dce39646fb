// Every model has the same losses, parameters and optimizer state, bit for bit, at stages 0 to 3 on
// 1, 2 and 3 ranks, also with recomputed activations.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/models/small_training.h"

namespace zg::testing {
namespace {

class ModelBits : public ::testing::TestWithParam<std::string> {};

TEST_P(ModelBits, AreTheSameAtAnyStageOnAnyNumberOfRanks) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    SmallTraining training;
    training.dtype = dtype;
    const SmallTrained expected = TrainSmallModel(GetParam(), training);
    ASSERT_EQ(expected.losses.size(), kSmallSteps);
    for (const int ranks : {1, 2, 3}) {
      for (const int stage : {0, 1, 2, 3}) {
        SCOPED_TRACE(fmt::format("{}, {} ranks, stage {}", DTypeName(dtype), ranks, stage));
        training.ranks = ranks;
        training.stage = stage;
        training.recomputes = ranks == 2 && stage == 3;
        const SmallTrained got = TrainSmallModel(GetParam(), training);
        EXPECT_EQ(got.losses, expected.losses);
        EXPECT_EQ(got.param_sha256, expected.param_sha256);
        EXPECT_EQ(got.optimizer_sha256, expected.optimizer_sha256);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ModelBits, ::testing::ValuesIn(SmallModelNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace zg::testing
