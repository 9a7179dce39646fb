// bf16 and f16 together with all other options that change the program: the same bits at every
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

// Norms, a product, and the embedding that the head shares in 16 bits.
TEST_P(HalfOptionsTest, ModulesInF32) {
  RunConfig config = Config();
  const std::string in_16_bits = TrainOrDie(config).param_sha256;
  for (const char* modules : {"**.norm1,final_norm", "blocks.0.mlp.expand", "token_embedding"}) {
    SCOPED_TRACE(modules);
    config.f32_modules = modules;
    config.ranks = 1;
    config.stage = 0;
    config.recompute = "";
    const RunResult expected = TrainOrDie(config);
    EXPECT_NE(expected.param_sha256, in_16_bits);
    for (const int ranks : {2, 3}) {
      config.ranks = ranks;
      ExpectSameBitsEverywhere(config, expected);
    }
  }
}

// All of them: the bits of f32 (no f16, whose losses are scaled).
TEST(F32Modules, AllOfThemComputeAsInF32) {
  RunConfig config;
  config.model = TestModel::kClassifier;
  config.micro_batches = 4;
  const RunResult expected = TrainOrDie(config);
  config.dtype = DType::kBF16;
  config.f32_modules = "*";
  for (const int stage : {0, 3}) {
    config.ranks = 2;
    config.stage = stage;
    ExpectSameBits(expected, TrainOrDie(config));
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
