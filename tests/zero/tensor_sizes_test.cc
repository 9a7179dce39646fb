// Two, three and four ranks that share micro-batches, with as many heads as they need: at a given size
// of the axis bits know neither the stage nor how the data ranks are factored, and between sizes losses
// are close.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/zero/expect_run.h"
#include "tests/zero/tensor_runs.h"

namespace zg::testing {
namespace {

// A model with how it is split.
struct Setting {
  TestModel model = TestModel::kFourHeadGpt;
  DType dtype = DType::kF32;
  bool splits_all = false;  // besides heads and columns the vocabulary and the sequence
};

RunConfig ConfigOf(const Setting& setting, std::vector<MeshAxis> mesh) {
  RunConfig config = On(std::move(mesh), setting.model);
  config.dtype = setting.dtype;
  config.micro_batches = 12;
  if (setting.splits_all) AddRulesForAll(&config);
  return config;
}

std::string NameOf(const ::testing::TestParamInfo<Setting>& info) {
  const bool has_six =
      info.param.model == TestModel::kSixHeadGpt || info.param.model == TestModel::kSixHeadLlama;
  return fmt::format("{}_of_{}_heads_{}{}", IsLlama(info.param.model) ? "llama" : "gpt",
                     has_six                     ? 6
                     : IsLlama(info.param.model) ? 8
                                                 : 4,
                     DTypeName(info.param.dtype), info.param.splits_all ? "_splits_all" : "");
}

std::vector<Setting> Settings(const std::vector<TestModel>& models) {
  std::vector<Setting> settings;
  for (const TestModel model : models) {
    settings.push_back({model, DType::kF32, false});
    settings.push_back({model, DType::kBF16, true});
  }
  return settings;
}

void ExpectSameBitsAtASize(const Setting& setting, int size,
                           const std::vector<std::vector<MeshAxis>>& data_axes) {
  RunConfig config = ConfigOf(setting, {{"tensor", size}});
  config.steps = 2;
  const RunResult expected = TrainOrDie(config);
  ExpectPlanIsMeasured(expected, config.steps);
  std::vector<std::vector<MeshAxis>> meshes;
  for (std::vector<MeshAxis> mesh : data_axes) {
    mesh.push_back({"tensor", size});
    meshes.push_back(std::move(mesh));
  }
  ExpectSameOnMeshes(meshes, config, expected);
}

class TensorSizesTest : public ::testing::TestWithParam<Setting> {};
using TensorOfThreeTest = TensorSizesTest;

INSTANTIATE_TEST_SUITE_P(
    Settings, TensorSizesTest,
    ::testing::ValuesIn(Settings({TestModel::kFourHeadGpt, TestModel::kEightHeadLlama})), NameOf);
INSTANTIATE_TEST_SUITE_P(
    Settings, TensorOfThreeTest,
    ::testing::ValuesIn(Settings({TestModel::kSixHeadGpt, TestModel::kSixHeadLlama})), NameOf);

TEST_P(TensorSizesTest, FourHaveTheBitsOfTheSize) {
  ExpectSameBitsAtASize(GetParam(), 4, {{{"data", 1}}, {{"data", 2}}});
}

TEST_P(TensorSizesTest, TwoHaveTheBitsOfTheSize) {
  ExpectSameBitsAtASize(GetParam(), 2,
                        {{{"data", 3}}, {{"data", 4}}, {{"replica", 2}, {"shard", 2}}});
}

TEST_P(TensorOfThreeTest, HaveTheBitsOfTheSize) {
  ExpectSameBitsAtASize(GetParam(), 3, {{{"data", 1}}, {{"data", 2}}});
}

// The sums over the axis are taken in another order.
class TwentyStepsTest : public ::testing::TestWithParam<Setting> {};

INSTANTIATE_TEST_SUITE_P(Settings, TwentyStepsTest,
                         ::testing::Values(Setting{TestModel::kFourHeadGpt},
                                           Setting{TestModel::kFourHeadGpt, DType::kF32, true},
                                           Setting{TestModel::kSixHeadGpt},
                                           Setting{TestModel::kEightHeadLlama},
                                           Setting{TestModel::kEightHeadLlama, DType::kF32, true},
                                           Setting{TestModel::kSixHeadLlama, DType::kF32, true}),
                         NameOf);

TEST_P(TwentyStepsTest, AreCloseToThoseOfOneRankAtEverySize) {
  const auto train = [](std::vector<MeshAxis> mesh, int stage) {
    RunConfig config = ConfigOf(GetParam(), std::move(mesh));
    config.micro_batches = 4;
    config.steps = 20;
    config.stage = stage;
    return TrainOrDie(config);
  };
  const TestModel model = GetParam().model;
  const bool has_six = model == TestModel::kSixHeadGpt || model == TestModel::kSixHeadLlama;
  const RunResult one = train({{"data", 1}}, 0);
  for (const int size : has_six ? std::vector<int>{3} : std::vector<int>{2, 4}) {
    SCOPED_TRACE(fmt::format("tensor={}", size));
    const RunResult got = train({{"data", 2}, {"tensor", size}}, 2);
    ASSERT_EQ(one.losses.size(), got.losses.size());
    for (size_t i = 0; i < one.losses.size(); ++i) {
      EXPECT_NEAR(got.losses[i] / one.losses[i], 1, 1e-5) << "step " << i + 1;
    }
  }
}

// Each of four ranks has its heads of q, k and v, and of fewer key heads.
TEST(TensorSizes, TalkAlongTheAxisAsPlanned) {
  for (const TestModel model : {TestModel::kFourHeadGpt, TestModel::kEightHeadLlama}) {
    RunConfig config = ConfigOf({model}, {{"data", 2}, {"tensor", 4}});
    config.steps = 1;
    config.stage = 3;
    const RunResult result = TrainOrDie(config);
    ExpectPlanIsMeasured(result, config.steps);
    int64_t along_tensor = 0, along_data = 0;
    for (const AxesTraffic& traffic : result.traffic_by_axes) {
      if (traffic.axes == "tensor") along_tensor = traffic.measured;
      if (traffic.axes == "data") along_data = traffic.measured;
    }
    EXPECT_GT(along_tensor, 0);
    EXPECT_GT(along_data, 0);
  }
}

}  // namespace
}  // namespace zg::testing
