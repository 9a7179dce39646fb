// An axis with fixed parts: one rank that computes all of them has the bits of two and four ranks that
// share them, at every stage and on any number of data ranks.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/comm/host_staged.h"
#include "tests/testing/fake_device.h"
#include "tests/zero/expect_run.h"
#include "tests/zero/tensor_runs.h"

namespace zg::testing {
namespace {

MeshAxis Tensor(int size, int parts) { return {"tensor", size, parts}; }

// A model with how it is split.
struct Setting {
  TestModel model = TestModel::kFourHeadGpt;
  int parts = 4;
  bool splits_all = false;  // besides heads and columns the vocabulary and the sequence
  std::string recompute = {};
};

RunConfig ConfigOf(const Setting& setting, std::vector<MeshAxis> mesh) {
  RunConfig config = On(std::move(mesh), setting.model);
  config.micro_batches = 12;
  config.max_grad_norm = 0.5;
  config.recompute = setting.recompute;
  config.steps = 3;
  if (setting.splits_all) AddRulesForAll(&config);
  return config;
}

std::string NameOf(const ::testing::TestParamInfo<Setting>& info) {
  return fmt::format("{}_in_{}_parts{}{}", IsLlama(info.param.model) ? "llama" : "gpt",
                     info.param.parts, info.param.splits_all ? "_splits_all" : "",
                     info.param.recompute.empty() ? "" : "_recomputes");
}

class TensorPartsTest : public ::testing::TestWithParam<Setting> {};

INSTANTIATE_TEST_SUITE_P(Settings, TensorPartsTest,
                         ::testing::Values(Setting{TestModel::kFourHeadGpt},
                                           Setting{TestModel::kFourHeadGpt, 4, true},
                                           Setting{TestModel::kFourHeadGpt, 4, true, "blocks.*"},
                                           Setting{TestModel::kFourHeadGpt, 2, true},
                                           Setting{TestModel::kSixHeadGpt, 6, false},
                                           Setting{TestModel::kEightHeadLlama},
                                           Setting{TestModel::kEightHeadLlama, 4, true}),
                         NameOf);

TEST_P(TensorPartsTest, HaveTheSameBitsOnAnyNumberOfRanks) {
  const int parts = GetParam().parts;
  const int fewest = parts == 6 ? 3 : 1;  // a rank has 1, 2, 4, ... parts
  const RunConfig config = ConfigOf(GetParam(), {Tensor(fewest, parts)});
  const RunResult expected = TrainOrDie(config);
  ExpectPlanIsMeasured(expected, config.steps);
  for (int size = 2 * fewest; size <= parts; size *= 2) {
    SCOPED_TRACE(fmt::format("tensor={}/{}", size, parts));
    ExpectSameOnMeshes({{Tensor(size, parts)}, {{"data", 2}, Tensor(size, parts)}}, config,
                       expected);
  }
  ExpectSameOnMeshes({{{"replica", 3}, {"shard", 2}, Tensor(fewest, parts)}}, config, expected);
}

// A checkpoint of one rank goes on, on any number of ranks, with the bits of the run that was not
// interrupted.
TEST(TensorParts, CheckpointsGoOnWithTheSameBits) {
  Setting setting;
  setting.splits_all = true;
  const RunResult expected = TrainOrDie(ConfigOf(setting, {Tensor(1, 4)}));
  RunConfig first = ConfigOf(setting, {Tensor(1, 4)});
  first.steps = 1;
  first.save = ::testing::TempDir() + "tensor_parts_checkpoint";
  TrainOrDie(first);
  for (const std::vector<MeshAxis>& mesh : std::vector<std::vector<MeshAxis>>{
           {Tensor(2, 4)}, {{"data", 2}, Tensor(4, 4)}, {{"data", 3}, Tensor(1, 4)}}) {
    SCOPED_TRACE(Mesh(mesh).ToString());
    RunConfig rest = ConfigOf(setting, mesh);
    rest.stage = 3;
    rest.resume = first.save;
    const RunResult got = TrainOrDie(rest);
    EXPECT_EQ(got.losses, std::vector<float>(expected.losses.begin() + 1, expected.losses.end()));
    EXPECT_EQ(got.param_sha256, expected.param_sha256);
    EXPECT_EQ(got.optimizer_sha256, expected.optimizer_sha256);
  }
}

TEST(TensorParts, AreRefusedWhereTheyCannotBeEqual) {
  const auto error = [](const RunConfig& config) { return Train(config).status().message(); };
  RunConfig half = ConfigOf({}, {Tensor(2, 4)});
  half.dtype = DType::kBF16;
  EXPECT_NE(error(half).find("mesh: tensor=2/4: sums of parts are added in f32, got bf16"),
            std::string::npos);
  EXPECT_NE(error(ConfigOf({}, {Tensor(2, 6)})).find("tensor=2/6: got 6 parts for 2 ranks"),
            std::string::npos);
  RunConfig sequence = ConfigOf({}, {Tensor(1, 4)});  // splits the rows of the loss
  AddRules(kGptSequence, &sequence);
  EXPECT_NE(error(sequence).find("cannot do so in parts"), std::string::npos) << error(sequence);
  RunConfig on_device = ConfigOf({}, {Tensor(1, 4)});
  on_device.connect_device = [](Communicator& host) -> StatusOr<DeviceRank> {
    DeviceRank rank;
    rank.device = std::make_unique<FakeDevice>();
    ZG_ASSIGN_OR_RETURN(rank.communicator, MakeHostStagedCommunicator(rank.device.get(), &host));
    return rank;
  };
  on_device.kernels = &FakeDeviceKernels();
  EXPECT_NE(error(on_device).find("only the CPU's kernels compute several parts"),
            std::string::npos)
      << error(on_device);
}

// Without fixed parts the sums over the axis are taken in another order.
TEST(TensorParts, DifferFromOneSum) {
  const RunResult one = TrainOrDie(ConfigOf({}, {{"tensor", 1}}));
  const RunResult four = TrainOrDie(ConfigOf({}, {Tensor(1, 4)}));
  EXPECT_NE(one.param_sha256, four.param_sha256);
}

}  // namespace
}  // namespace zg::testing
