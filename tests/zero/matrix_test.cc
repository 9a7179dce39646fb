// Every way of training against every other: dtype, accumulation, both modes of reduction,
// recomputation, clipping, stage and number of ranks. For a given dtype and clipping the bits
// depend on nothing else, except with reduction once per step, where they depend on the number of
// ranks; and every plan is measured.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/sanitizer.h"
#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

// Sanitizers make runs ten times as slow, so they run a sample.
const std::vector<int> kRanks = AllOrSample({1, 2, 3, 4}, {1, 3});
const std::vector<int> kStages = AllOrSample({0, 1, 2, 3}, {0, 3});

struct Setting {
  TestModel model = TestModel::kMlp;
  DType dtype = DType::kF32;
  bool accumulates = false;  // twelve micro-batches on all ranks, instead of one on each
  double max_grad_norm = 0;
};

std::string NameOf(const Setting& setting) {
  return fmt::format("{}_{}{}{}", setting.model == TestModel::kGpt ? "gpt" : "mlp",
                     DTypeName(setting.dtype), setting.accumulates ? "_accumulates" : "",
                     setting.max_grad_norm > 0 ? "_clips" : "");
}

std::vector<Setting> AllSettings() {
  std::vector<Setting> settings;
  for (TestModel model : {TestModel::kMlp, TestModel::kGpt}) {
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      settings.push_back({model, dtype, /*accumulates=*/false, 0.0});
      settings.push_back({model, dtype, /*accumulates=*/true, 0.0});
      settings.push_back({model, dtype, /*accumulates=*/true, 0.5});
    }
  }
  return settings;
}

class MatrixTest : public ::testing::TestWithParam<Setting> {
 protected:
  static RunConfig Config(int64_t micro_batches) {
    const Setting& setting = GetParam();
    RunConfig config;
    config.model = setting.model;
    config.dtype = setting.dtype;
    config.max_grad_norm = setting.max_grad_norm;
    config.steps = 2;
    config.micro_batches = micro_batches;
    return config;
  }

  static void ExpectTheSame(const RunResult& expected, const RunConfig& config) {
    const RunResult result = TrainOrDie(config);
    ExpectSameBits(expected, result);
    ExpectPlanIsMeasured(result, config.steps);
  }
};

INSTANTIATE_TEST_SUITE_P(Settings, MatrixTest, ::testing::ValuesIn(AllSettings()),
                         [](const auto& info) { return NameOf(info.param); });

TEST_P(MatrixTest, SameBitsAndMeasuredPlans) {
  for (int ranks : kRanks) {
    RunConfig config = Config(GetParam().accumulates ? 12 : ranks);
    const RunResult one_rank = TrainOrDie(config);
    config.ranks = ranks;
    for (ReduceEvery reduce_every : {ReduceEvery::kMicroBatch, ReduceEvery::kStep}) {
      const bool is_every_step = reduce_every == ReduceEvery::kStep;
      // With one micro-batch per rank both are the same program (reduce_every_test).
      if (is_every_step && !GetParam().accumulates) continue;
      config.reduce_every = reduce_every;
      config.stage = 0;
      config.recompute = "";
      const RunResult expected = is_every_step ? TrainOrDie(config) : one_rank;
      for (int stage : kStages) {
        for (const char* modules : {"", "*"}) {
          SCOPED_TRACE(fmt::format("{} ranks, reduced every {}, stage {}, recompute '{}'", ranks,
                                   is_every_step ? "step" : "micro-batch", stage, modules));
          config.stage = stage;
          config.recompute = modules;
          ExpectTheSame(expected, config);
        }
      }
    }
  }
}

}  // namespace
}  // namespace zg::testing
