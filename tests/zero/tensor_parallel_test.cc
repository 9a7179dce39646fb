// A mesh axis whose ranks share micro-batches: parameters split by rules, the resulting placements,
// and ZeRO over the other axes. At a given size of the axis, the bits depend on neither the stage
// nor the factoring of the data ranks; between sizes, sums over it are taken in another order.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/zero/expect_run.h"
#include "tests/zero/tensor_runs.h"

namespace zg::testing {
namespace {

void ExpectClose(const RunResult& expected, const RunResult& got, double tolerance) {
  ASSERT_EQ(expected.losses.size(), got.losses.size());
  for (size_t i = 0; i < expected.losses.size(); ++i) {
    EXPECT_NEAR(got.losses[i] / expected.losses[i], 1, tolerance) << "step " << i + 1;
  }
  EXPECT_NEAR(got.eval_loss / expected.eval_loss, 1, tolerance);
  EXPECT_NEAR(got.param_sum, expected.param_sum, std::abs(expected.param_sum) * 100 * tolerance);
}

struct Setting {
  TestModel model = TestModel::kGpt;
  DType dtype = DType::kF32;
  double max_grad_norm = 0;
  std::string recompute;
  bool splits_vocabulary = false;
  bool splits_sequence = false;
};

class TensorParallelTest : public ::testing::TestWithParam<Setting> {
 protected:
  static RunConfig Config(std::vector<MeshAxis> mesh) {
    RunConfig config = On(std::move(mesh), GetParam().model);
    config.dtype = GetParam().dtype;
    config.max_grad_norm = GetParam().max_grad_norm;
    config.recompute = GetParam().recompute;
    const bool is_llama = config.model == TestModel::kLlama;
    if (GetParam().splits_vocabulary) {
      AddRules(is_llama ? kLlamaVocabulary : kGptVocabulary, &config);
    }
    if (GetParam().splits_sequence) AddRules(is_llama ? kLlamaSequence : kGptSequence, &config);
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Settings, TensorParallelTest,
    ::testing::Values(Setting{TestModel::kGpt, DType::kF32, 0, ""},
                      Setting{TestModel::kGpt, DType::kF32, 0.5, "blocks.*"},
                      Setting{TestModel::kGpt, DType::kBF16, 0.5, ""},
                      Setting{TestModel::kLlama, DType::kF32, 0.5, ""},
                      Setting{TestModel::kLlama, DType::kBF16, 0, "model.layers.*"},
                      Setting{TestModel::kEvenGpt, DType::kF32, 0.5, "", true},
                      Setting{TestModel::kEvenGpt, DType::kBF16, 0, "blocks.*", true, true},
                      Setting{TestModel::kGpt, DType::kF32, 0, "blocks.*", false, true},
                      Setting{TestModel::kLlama, DType::kF32, 0, "model.layers.*", true, true},
                      Setting{TestModel::kLlama, DType::kBF16, 0.5, "", true, true}),
    [](const auto& info) {
      return fmt::format("{}_{}{}{}{}{}", info.param.model == TestModel::kLlama ? "llama" : "gpt",
                         DTypeName(info.param.dtype), info.param.max_grad_norm > 0 ? "_clips" : "",
                         info.param.recompute.empty() ? "" : "_recomputes",
                         info.param.splits_vocabulary ? "_vocabulary" : "",
                         info.param.splits_sequence ? "_sequence" : "");
    });

TEST_P(TensorParallelTest, HasTheBitsOfItsSizeAtEveryStageOnEveryMesh) {
  const RunResult one = TrainOrDie(Config({{"data", 1}}));
  const RunResult two = TrainOrDie(Config({{"tensor", 2}}));
  ExpectClose(one, two, GetParam().dtype == DType::kF32 ? 1e-5 : 1e-2);
  ExpectPlanIsMeasured(two, Config({{"tensor", 2}}).steps);
  ExpectSameOnMeshes({{{"data", 2}, {"tensor", 2}}, {{"replica", 2}, {"shard", 2}, {"tensor", 2}}},
                     Config({{"tensor", 2}}), two);
}

TEST(TensorParallel, HoldsAPartOfWhatItSplits) {
  const RunResult one = TrainOrDie(On({{"data", 1}}));
  const RunResult two = TrainOrDie(On({{"tensor", 2}}));
  const auto parameters = static_cast<int>(MemoryCategory::kParameters);
  // The blocks' weights, 12 C^2 each, are most of it, and halved.
  EXPECT_LT(two.measured[parameters], 0.62 * one.measured[parameters]);
  EXPECT_LT(two.measured[static_cast<int>(MemoryCategory::kOptimizerState)],
            0.62 * one.measured[static_cast<int>(MemoryCategory::kOptimizerState)]);
}

TEST(TensorParallel, CheckpointsGoOnOnEveryMesh) {
  const std::string directory = ::testing::TempDir() + "/tensor_parallel";
  RunConfig config = On({{"data", 2}, {"tensor", 2}});
  config.stage = 3;
  const RunResult whole = TrainOrDie(config);
  std::filesystem::remove_all(directory);
  config.steps = 1;
  config.save = directory;
  TrainOrDie(config);
  RunConfig resumed = On({{"shard", 2}, {"tensor", 2}});
  resumed.stage = 2;
  resumed.resume = directory;
  const RunResult same_size = TrainOrDie(resumed);
  EXPECT_EQ(same_size.param_sha256, whole.param_sha256);
  EXPECT_EQ(same_size.optimizer_sha256, whole.optimizer_sha256);

  resumed = On({{"data", 4}});
  resumed.stage = 1;
  resumed.resume = directory;
  EXPECT_NEAR(TrainOrDie(resumed).losses.back() / whole.losses.back(), 1, 1e-5);
}

}  // namespace
}  // namespace zg::testing
