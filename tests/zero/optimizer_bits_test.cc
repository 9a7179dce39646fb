// Optimizers that use whole tensors give the same bits at every stage and on any number of ranks,
// each of which has parts of tensors; and plans equal measurements.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/nn/optimizers.h"
#include "tests/testing/sanitizer.h"
#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

const std::vector<int> kRanks = AllOrSample({1, 2, 3, 4}, {1, 3});

struct Setting {
  std::string name;
  optim::Optimizer optimizer;
  TestModel model = TestModel::kMlp;
  DType dtype = DType::kF32;
};

std::vector<Setting> AllSettings() {
  std::vector<Setting> settings;
  const optim::Optimizer lamb = optim::Lamb{.lr = 0.02, .weight_decay = 0.1};
  const optim::Optimizer adafactor = optim::Adafactor{.lr = 0.02, .weight_decay = 0.1};
  for (const TestModel model : {TestModel::kMlp, TestModel::kGpt}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      settings.push_back({"lamb", lamb, model, dtype});
      settings.push_back({"adafactor", adafactor, model, dtype});
    }
  }
  return settings;
}

class OptimizerBitsTest : public ::testing::TestWithParam<Setting> {
 protected:
  static RunConfig Config() {
    RunConfig config;
    config.optimizer = GetParam().optimizer;
    config.model = GetParam().model;
    config.dtype = GetParam().dtype;
    config.micro_batches = 12;
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(Settings, OptimizerBitsTest, ::testing::ValuesIn(AllSettings()),
                         [](const auto& info) {
                           return fmt::format("{}_{}_{}", info.param.name,
                                              info.param.model == TestModel::kGpt ? "gpt" : "mlp",
                                              DTypeName(info.param.dtype));
                         });

TEST_P(OptimizerBitsTest, AreTheSameAtEveryStageOnAnyNumberOfRanks) {
  const RunConfig config = Config();
  ExpectSameOnRanks(kRanks, config, TrainOrDie(config));
}

// Small buckets cut other tensors than large ones, and parameters that stay whole are not cut at
// all.
TEST_P(OptimizerBitsTest, DependOnNoBucketAndOnNoReplication) {
  RunConfig config = Config();
  const RunResult expected = TrainOrDie(config);
  for (const auto& [bucket_bytes, shard_min_elements] :
       std::vector<std::pair<int64_t, int64_t>>{{256, 0}, {1 << 20, 0}, {4096, 100}}) {
    SCOPED_TRACE(fmt::format("{} bytes, {} elements", bucket_bytes, shard_min_elements));
    config.bucket_bytes = bucket_bytes;
    config.shard_min_elements = shard_min_elements;
    ExpectSameOnRanks({3}, config, expected);
  }
}

// A limit adds a control, which the updates read before the sums; and a mesh of two data axes has
// parts of parts.
TEST_P(OptimizerBitsTest, AreTheSameWithALimitAndOnTwoAxes) {
  RunConfig config = Config();
  config.max_grad_norm = 0.5;
  const RunResult expected = TrainOrDie(config);
  config.ranks = 4;
  config.mesh = {{"data", 2}, {"replica", 2}};
  for (int stage = 0; stage <= 3; ++stage) {
    SCOPED_TRACE(stage);
    config.stage = stage;
    const RunResult result = TrainOrDie(config);
    ExpectSameBits(expected, result);
    ExpectPlanIsMeasured(result, config.steps);
  }
}

}  // namespace
}  // namespace zg::testing
