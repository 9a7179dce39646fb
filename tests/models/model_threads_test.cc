// Every model has the same losses, parameters and optimizer state, bit for bit, with 1, 2 and 3
// threads per rank, at stages 0 and 3, and uses the planned memory.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "framework/kernels/cpu/sharing.h"
#include "tests/models/small_training.h"

namespace zg::testing {
namespace {

class ModelThreads : public ::testing::TestWithParam<std::string> {
 protected:
  ModelThreads() { ShareSmallWork(true); }
  ~ModelThreads() override { ShareSmallWork(false); }
};

TEST_P(ModelThreads, ChangeNoBit) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    SmallTraining training;
    training.micro_batches = 2;
    training.dtype = dtype;
    training.max_grad_norm = 1.0;
    const SmallTrained expected = TrainSmallModel(GetParam(), training);
    ASSERT_EQ(expected.losses.size(), kSmallSteps);
    for (const int stage : {0, 3}) {
      for (const int threads : {1, 2, 3}) {
        SCOPED_TRACE(fmt::format("{}, stage {}, {} threads", DTypeName(dtype), stage, threads));
        training.ranks = stage == 0 ? 1 : 2;
        training.stage = stage;
        training.threads = threads;
        const SmallTrained got = TrainSmallModel(GetParam(), training);
        EXPECT_EQ(got.losses, expected.losses);
        EXPECT_EQ(got.param_sha256, expected.param_sha256);
        EXPECT_EQ(got.optimizer_sha256, expected.optimizer_sha256);
        if (stage > 0) continue;
        // Threads have scratch of their own, though a part of a product may need less.
        EXPECT_GE(got.workspace_bytes, 0.9 * expected.workspace_bytes);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ModelThreads, ::testing::ValuesIn(SmallModelNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace zg::testing
