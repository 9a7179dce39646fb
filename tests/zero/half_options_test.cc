// In bf16 and f16 together with everything else that changes the program: the same bits at every
// stage, with and without recomputation, and a plan that equals the measurement.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

class HalfOptionsTest : public ::testing::TestWithParam<DType> {
 protected:
  static RunConfig Config() {
    RunConfig config;
    config.model = TestModel::kGpt;  // with dropout and a tied weight
    config.dtype = GetParam();
    config.micro_batches = 12;
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(DTypes, HalfOptionsTest, ::testing::Values(DType::kBF16, DType::kF16),
                         [](const auto& info) { return std::string(DTypeName(info.param)); });

// `expected` at every stage, with and without recomputation.
void ExpectSameBitsEverywhere(RunConfig config, const RunResult& expected) {
  for (const int stage : {0, 1, 2, 3}) {
    for (const char* modules : {"", "blocks.*"}) {
      SCOPED_TRACE(fmt::format("{} ranks, stage {}, recompute '{}'", config.ranks, stage, modules));
      config.stage = stage;
      config.recompute = modules;
      const RunResult result = TrainOrDie(config);
      ExpectSameBits(expected, result);
      ExpectPlanIsMeasured(result, config.steps);
    }
  }
}

TEST_P(HalfOptionsTest, ClippedAndRecomputed) {
  RunConfig config = Config();
  config.max_grad_norm = 0.1;
  const RunResult expected = TrainOrDie(config);
  ASSERT_EQ(expected.grad_norms.size(), static_cast<size_t>(config.steps));
  for (const int ranks : {1, 2, 3}) {
    config.ranks = ranks;
    ExpectSameBitsEverywhere(config, expected);
  }
}

TEST_P(HalfOptionsTest, ReducedOncePerStep) {
  RunConfig config = Config();
  config.reduce_every = ReduceEvery::kStep;
  for (const double max_grad_norm : {0.0, 0.1}) {
    config.max_grad_norm = max_grad_norm;
    for (const int ranks : {1, 3}) {
      config.ranks = ranks;
      config.stage = 0;
      config.recompute = "";
      ExpectSameBitsEverywhere(config, TrainOrDie(config));
    }
  }
}

TEST_P(HalfOptionsTest, ReplicatedTensorsWithoutAccumulation) {
  RunConfig config = Config();
  config.micro_batches = 3;
  config.max_grad_norm = 0.1;
  const RunResult expected = TrainOrDie(config);
  config.ranks = 3;
  for (const int64_t shard_min_elements : {0, 30, 1 << 20}) {
    SCOPED_TRACE(shard_min_elements);
    config.shard_min_elements = shard_min_elements;
    ExpectSameBitsEverywhere(config, expected);
  }
}

}  // namespace
}  // namespace zg::testing
