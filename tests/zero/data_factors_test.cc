// Every factorisation of 1 to 8 data ranks into copies (replica) and shards: at every stage the losses,
// the parameters and the optimizer's states have the bits of plain data parallelism, and these are those
// of one rank with the same micro-batches.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

constexpr int kMaxRanks = 8;

struct Setting {
  int ranks = 1;
  TestModel model = TestModel::kGpt;
  DType dtype = DType::kF32;
};

// The settings of a number of ranks follow each other: shards of the test have as much to do.
std::vector<Setting> AllSettings() {
  std::vector<Setting> settings;
  for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
    for (const TestModel model : {TestModel::kGpt, TestModel::kLlama}) {
      for (const DType dtype : {DType::kF32, DType::kBF16}) {
        settings.push_back({ranks, model, dtype});
      }
    }
  }
  return settings;
}

std::vector<std::vector<MeshAxis>> Factorisations(int ranks) {
  std::vector<std::vector<MeshAxis>> meshes;
  for (int replicas = 1; replicas <= ranks; ++replicas) {
    if (ranks % replicas == 0)
      meshes.push_back({{"replica", replicas}, {"shard", ranks / replicas}});
  }
  return meshes;
}

class DataFactorsTest : public ::testing::TestWithParam<Setting> {};

INSTANTIATE_TEST_SUITE_P(Settings, DataFactorsTest, ::testing::ValuesIn(AllSettings()),
                         [](const auto& info) {
                           return fmt::format("{}_ranks_{}_{}", info.param.ranks,
                                              IsLlama(info.param.model) ? "llama" : "gpt",
                                              DTypeName(info.param.dtype));
                         });

TEST_P(DataFactorsTest, HasTheBitsOfPlainDataParallelism) {
  const Setting& setting = GetParam();
  RunConfig config;
  config.model = setting.model;
  config.dtype = setting.dtype;
  config.micro_batches = 24 % setting.ranks == 0 ? 24 : 35;
  config.steps = 2;
  const RunResult one_rank = TrainOrDie(config);
  config.ranks = setting.ranks;
  const RunResult plain = TrainOrDie(config);
  ExpectSameBits(one_rank, plain);
  ExpectSameOnMeshes(Factorisations(setting.ranks), config, plain);
}

}  // namespace
}  // namespace zg::testing
