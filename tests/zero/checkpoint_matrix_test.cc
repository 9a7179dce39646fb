// Saving at any stage on any number of ranks and resuming at any other. All writers produce the
// same bytes, and every reader continues with the bits of the uninterrupted run. So every save
// resumes everywhere.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "framework/io/checkpoint_names.h"
#include "framework/nn/optimizers.h"
#include "tests/io/test_file.h"
#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kSavedStep = 2;
constexpr int kSteps = 4;
constexpr uint64_t kShardBytes = 4000;  // several files per checkpoint

struct Setting {
  TestModel model = TestModel::kMlp;
  DType dtype = DType::kF32;
  double max_grad_norm = 0;
  bool is_factored = false;  // Adafactor, instead of the model's optimizer
};

std::string NameOf(const Setting& setting) {
  return fmt::format("{}_{}{}", setting.model == TestModel::kGpt ? "gpt" : "mlp",
                     DTypeName(setting.dtype), setting.is_factored ? "_factored" : "");
}

class CheckpointMatrixTest : public ::testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    directory_ = TestPath("checkpoint_matrix_" + NameOf(GetParam()));
    fs::remove_all(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  static RunConfig Config(int steps) {
    RunConfig config;
    config.model = GetParam().model;
    config.dtype = GetParam().dtype;
    config.max_grad_norm = GetParam().max_grad_norm;
    if (GetParam().is_factored) config.optimizer = optim::Adafactor{.lr = 0.02};
    config.micro_batches = 12;
    config.steps = steps;
    return config;
  }

  std::string SavedBy(int stage, int ranks) const {
    return fmt::format("{}/stage{}_ranks{}", directory_, stage, ranks);
  }

  std::string directory_;
};

// Every file's bytes, by name.
std::map<std::string, std::string> FilesOf(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    files[entry.path().filename().string()] = ReadTestFile(entry.path().string());
  }
  return files;
}

INSTANTIATE_TEST_SUITE_P(Settings, CheckpointMatrixTest,
                         ::testing::Values(Setting{TestModel::kMlp, DType::kF32, 0.0},
                                           Setting{TestModel::kMlp, DType::kBF16, 0.0},
                                           Setting{TestModel::kMlp, DType::kF16, 0.0},
                                           Setting{TestModel::kGpt, DType::kF32, 0.5},
                                           Setting{TestModel::kGpt, DType::kBF16, 0.0},
                                           Setting{TestModel::kGpt, DType::kF32, 0.5, true}),
                         [](const auto& info) { return NameOf(info.param); });

TEST_P(CheckpointMatrixTest, AnyToAny) {
  const RunResult uninterrupted = TrainOrDie(Config(kSteps));
  ASSERT_EQ(uninterrupted.losses.size(), kSteps);
  std::map<std::string, std::string> first_files;
  for (int stage : {0, 1, 2, 3}) {
    for (int ranks : {1, 2, 3, 4}) {
      SCOPED_TRACE(fmt::format("saved at stage {} by {} ranks", stage, ranks));
      RunConfig config = Config(kSavedStep);
      config.stage = stage;
      config.ranks = ranks;
      config.save = SavedBy(stage, ranks);
      config.save_options.max_shard_bytes = kShardBytes;
      TrainOrDie(config);
      const auto files = FilesOf(config.save + "/" + StepDirectoryName(kSavedStep));
      if (first_files.empty()) first_files = files;
      EXPECT_GT(files.size(), 6u);
      EXPECT_TRUE(files == first_files);
      EXPECT_EQ(ReadTestFile(config.save + "/latest"), "step-00000002\n");
    }
  }
  for (int stage : {0, 1, 2, 3}) {
    for (int ranks : {1, 2, 3, 4}) {
      SCOPED_TRACE(fmt::format("resumed at stage {} by {} ranks", stage, ranks));
      RunConfig config = Config(kSteps);
      config.stage = stage;
      config.ranks = ranks;
      config.bucket_bytes = 1000;
      config.resume = SavedBy((stage + 1) % 4, ranks % 4 + 1);
      const RunResult resumed = TrainOrDie(config);
      const std::vector<float> expected(uninterrupted.losses.begin() + kSavedStep,
                                        uninterrupted.losses.end());
      EXPECT_EQ(resumed.losses, expected);
      EXPECT_EQ(resumed.param_sha256, uninterrupted.param_sha256);
      EXPECT_EQ(resumed.optimizer_sha256, uninterrupted.optimizer_sha256);
      ExpectPlanIsMeasured(resumed, kSteps - kSavedStep);
    }
  }
}

// Tensors do not change on the way to another dtype; later bits are those of that dtype.
TEST(CheckpointDType, EveryNumberTypeResumesEveryOther) {
  for (const DType from : {DType::kF32, DType::kBF16, DType::kF16}) {
    RunConfig config;
    config.dtype = from;
    config.micro_batches = 2;
    config.steps = kSavedStep;
    config.save = TestPath(fmt::format("checkpoint_from_{}", DTypeName(from)));
    fs::remove_all(config.save);
    const RunResult saved = TrainOrDie(config);
    for (const DType to : {DType::kF32, DType::kBF16, DType::kF16}) {
      SCOPED_TRACE(fmt::format("{} to {}", DTypeName(from), DTypeName(to)));
      RunConfig next = config;
      next.dtype = to;
      next.stage = 3;
      next.ranks = 2;
      next.save = "";
      next.resume = config.save;
      EXPECT_EQ(TrainOrDie(next).param_sha256, saved.param_sha256);
      next.steps = kSavedStep + 1;
      const RunResult continued = TrainOrDie(next);
      ASSERT_EQ(continued.losses.size(), 1u);
      EXPECT_NE(continued.param_sha256, saved.param_sha256);
      EXPECT_NEAR(continued.losses[0], saved.losses.back(), 0.2 * saved.losses.back());
    }
    fs::remove_all(config.save);
  }
}

}  // namespace
}  // namespace zg::testing
