// Optimizers that use whole tensors, on parameters that a mesh axis splits: the values that they
// need are integers, summed over the ranks that have the parts. So at a given size of the axis the
// bits depend on neither the stage nor the factoring of the data ranks, and another size changes
// only the order of sums in forward and backward.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/nn/optimizers.h"
#include "tests/zero/expect_run.h"
#include "tests/zero/tensor_runs.h"

namespace zg::testing {
namespace {

struct Setting {
  std::string name;
  optim::Optimizer optimizer;
  TestModel model = TestModel::kGpt;
  DType dtype = DType::kF32;
  double max_grad_norm = 0;
};

std::vector<Setting> SettingsIn(const std::vector<DType>& dtypes) {
  std::vector<Setting> settings;
  for (const TestModel model : {TestModel::kEvenGpt, TestModel::kLlama}) {
    for (const DType dtype : dtypes) {
      const double max_grad_norm = model == TestModel::kLlama ? 0.5 : 0;  // which adds a control
      settings.push_back(
          {"lamb", optim::Lamb{.lr = 0.02, .weight_decay = 0.1}, model, dtype, max_grad_norm});
      settings.push_back({"adafactor", optim::Adafactor{.lr = 0.02, .weight_decay = 0.1}, model,
                          dtype, max_grad_norm});
    }
  }
  return settings;
}

class TensorOptimizersTest : public ::testing::TestWithParam<Setting> {
 protected:
  static RunConfig Config(std::vector<MeshAxis> mesh) {
    const Setting& setting = GetParam();
    RunConfig config = On(std::move(mesh), setting.model);
    config.optimizer = setting.optimizer;
    config.dtype = setting.dtype;
    config.max_grad_norm = setting.max_grad_norm;
    const bool is_llama = setting.model == TestModel::kLlama;
    AddRules(is_llama ? kLlamaVocabulary : kGptVocabulary, &config);
    return config;
  }
};

using TensorOptimizersInF32Test = TensorOptimizersTest;  // 16 bits are not so close

std::string NameOf(const ::testing::TestParamInfo<Setting>& info) {
  return fmt::format("{}_{}_{}", info.param.name,
                     info.param.model == TestModel::kLlama ? "llama" : "gpt",
                     DTypeName(info.param.dtype));
}

INSTANTIATE_TEST_SUITE_P(Settings, TensorOptimizersTest,
                         ::testing::ValuesIn(SettingsIn({DType::kF32, DType::kBF16})), NameOf);
INSTANTIATE_TEST_SUITE_P(Settings, TensorOptimizersInF32Test,
                         ::testing::ValuesIn(SettingsIn({DType::kF32})), NameOf);

TEST_P(TensorOptimizersTest, HaveTheBitsOfTheSizeAtEveryStageOnEveryMesh) {
  const RunResult two = TrainOrDie(Config({{"tensor", 2}}));
  ExpectPlanIsMeasured(two, Config({{"tensor", 2}}).steps);
  ExpectSameOnMeshes({{{"data", 2}, {"tensor", 2}}, {{"replica", 2}, {"shard", 2}, {"tensor", 2}}},
                     Config({{"tensor", 2}}), two);
}

// Two parts on one rank are summed as two ranks sum them.
TEST_P(TensorOptimizersInF32Test, HaveTheBitsOfFixedPartsOnFewerRanks) {
  const RunResult two = TrainOrDie(Config({{"tensor", 2, 2}}));
  for (const std::vector<MeshAxis>& mesh :
       {std::vector<MeshAxis>{{"tensor", 1, 2}}, {{"data", 2}, {"tensor", 1, 2}}}) {
    SCOPED_TRACE(Mesh(mesh).ToString());
    const RunResult one = TrainOrDie(Config(mesh));
    EXPECT_EQ(one.losses, two.losses);
    EXPECT_EQ(one.param_sha256, two.param_sha256);
  }
}

TEST_P(TensorOptimizersInF32Test, AreCloseToOneRankOverTwentySteps) {
  RunConfig one = Config({{"data", 1}}), two = Config({{"data", 2}, {"tensor", 2}});
  one.steps = two.steps = 20;
  two.stage = 2;
  const RunResult expected = TrainOrDie(one), got = TrainOrDie(two);
  ASSERT_EQ(expected.losses.size(), got.losses.size());
  for (size_t i = 0; i < expected.losses.size(); ++i) {
    EXPECT_NEAR(got.losses[i] / expected.losses[i], 1, 1e-5) << "step " << i + 1;
  }
}

// Row and column states are whole on every rank, and a checkpoint does not depend on ranks.
TEST_P(TensorOptimizersTest, CheckpointsGoOnOnAnotherMesh) {
  const std::string directory =
      fmt::format("{}/{}", ::testing::TempDir(),
                  ::testing::UnitTest::GetInstance()->current_test_info()->test_suite_name());
  RunConfig config = Config({{"data", 2}, {"tensor", 2}});
  config.stage = 3;
  const RunResult whole = TrainOrDie(config);
  std::filesystem::remove_all(directory);
  config.steps = 1;
  config.save = directory;
  TrainOrDie(config);
  RunConfig resumed = Config({{"shard", 2}, {"tensor", 2}});
  resumed.stage = 1;
  resumed.resume = directory;
  const RunResult same_size = TrainOrDie(resumed);
  EXPECT_EQ(same_size.param_sha256, whole.param_sha256);
  EXPECT_EQ(same_size.optimizer_sha256, whole.optimizer_sha256);

  resumed = Config({{"data", 4}});
  resumed.stage = 2;
  resumed.resume = directory;
  const double tolerance = GetParam().dtype == DType::kF32 ? 1e-5 : 1e-2;
  EXPECT_NEAR(TrainOrDie(resumed).losses.back() / whole.losses.back(), 1, tolerance);
}

}  // namespace
}  // namespace zg::testing
