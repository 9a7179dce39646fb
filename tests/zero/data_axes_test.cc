// Two and three data axes: the bits do not depend on how the data ranks are factored, nor on
// whether ZeRO shards over all of them or keeps copies along one.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

const std::vector<std::vector<MeshAxis>> kMeshes = {
    {{"data", 2}, {"shard", 2}},
    {{"replica", 2}, {"shard", 2}},
    {{"shard", 2}, {"replica", 2}},
    {{"replica", 2}, {"data", 2}},
    {{"replica", 4}},
};

struct Setting {
  TestModel model = TestModel::kMlp;
  DType dtype = DType::kF32;
  int64_t micro_batches = 4;
  double max_grad_norm = 0;
};

std::string NameOf(const Setting& setting) {
  return fmt::format("{}_{}_{}{}", setting.model == TestModel::kGpt ? "gpt" : "mlp",
                     DTypeName(setting.dtype), setting.micro_batches,
                     setting.max_grad_norm > 0 ? "_clips" : "");
}

class DataAxesTest : public ::testing::TestWithParam<Setting> {
 protected:
  static RunConfig Config() {
    const Setting& setting = GetParam();
    RunConfig config;
    config.model = setting.model;
    config.dtype = setting.dtype;
    config.max_grad_norm = setting.max_grad_norm;
    config.micro_batches = setting.micro_batches;
    config.steps = 2;
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(Settings, DataAxesTest,
                         ::testing::Values(Setting{TestModel::kGpt, DType::kF32, 4, 0.0},
                                           Setting{TestModel::kGpt, DType::kF32, 8, 0.5},
                                           Setting{TestModel::kMlp, DType::kF32, 12, 0.0},
                                           Setting{TestModel::kMlp, DType::kBF16, 4, 0.5},
                                           Setting{TestModel::kMlp, DType::kBF16, 8, 0.0}),
                         [](const auto& info) { return NameOf(info.param); });

TEST_P(DataAxesTest, HaveTheBitsOfOneAxisAndOfOneRank) {
  RunConfig config = Config();
  const RunResult one_rank = TrainOrDie(config);
  config.ranks = 4;
  for (int stage = 0; stage <= 3; ++stage) {
    config.stage = stage;
    config.mesh = {};
    ExpectSameBits(one_rank, TrainOrDie(config));
    for (const std::vector<MeshAxis>& mesh : kMeshes) {
      SCOPED_TRACE(fmt::format("stage {}, mesh({})", stage, Mesh(mesh).ToString()));
      config.mesh = mesh;
      const RunResult result = TrainOrDie(config);
      ExpectSameBits(one_rank, result);
      ExpectPlanIsMeasured(result, config.steps);
    }
  }
}

TEST_P(DataAxesTest, ThreeAxesAndOddSizes) {
  RunConfig config = Config();
  config.stage = 3;
  config.micro_batches = 24;
  config.steps = 1;
  const RunResult one_rank = TrainOrDie(config);
  for (const std::vector<MeshAxis>& mesh :
       std::vector<std::vector<MeshAxis>>{{{"replica", 2}, {"data", 2}, {"shard", 2}},
                                          {{"replica", 2}, {"shard", 3}},
                                          {{"replica", 3}, {"shard", 2}}}) {
    SCOPED_TRACE(fmt::format("mesh({})", Mesh(mesh).ToString()));
    config.mesh = mesh;
    config.ranks = Mesh(mesh).num_ranks();
    const RunResult result = TrainOrDie(config);
    ExpectSameBits(one_rank, result);
    ExpectPlanIsMeasured(result, config.steps);
  }
}

// Hybrid sharding keeps each shard twice.
TEST(HybridShardingTest, HoldsAsMuchAsItsShards) {
  RunConfig config;
  config.stage = 3;
  config.ranks = 2;
  config.micro_batches = 4;
  const RunResult two_ranks = TrainOrDie(config);
  config.ranks = 4;
  config.mesh = {{"replica", 2}, {"shard", 2}};
  const RunResult hybrid = TrainOrDie(config);
  for (const MemoryCategory category :
       {MemoryCategory::kParameters, MemoryCategory::kOptimizerState}) {
    const auto index = static_cast<int>(category);
    // Buckets are padded for all data ranks.
    EXPECT_NEAR(hybrid.measured[index], two_ranks.measured[index], 4096);
  }
}

TEST(HybridShardingTest, CheckpointsGoOnOnEveryMesh) {
  const std::string directory = ::testing::TempDir() + "/hybrid";
  RunConfig config;
  config.stage = 3;
  config.ranks = 4;
  config.micro_batches = 4;
  const RunResult whole = TrainOrDie(config);
  config.steps = 1;
  for (const std::vector<MeshAxis>& mesh : kMeshes) {
    std::filesystem::remove_all(directory);
    config.mesh = mesh;
    config.steps = 1;
    config.save = directory;
    config.resume = "";
    TrainOrDie(config);
    config.steps = 3;
    config.save = "";
    config.resume = directory;
    for (const std::vector<MeshAxis>& other : {kMeshes[1], std::vector<MeshAxis>{{"data", 4}}}) {
      SCOPED_TRACE(
          fmt::format("mesh({}) to mesh({})", Mesh(mesh).ToString(), Mesh(other).ToString()));
      config.mesh = other;
      const RunResult resumed = TrainOrDie(config);
      EXPECT_EQ(resumed.param_sha256, whole.param_sha256);
      EXPECT_EQ(resumed.optimizer_sha256, whole.optimizer_sha256);
    }
  }
}

}  // namespace
}  // namespace zg::testing
