// Secondary shards (hpZ): backward gathers along one axis alone, from parts that forward's gathers
// have left, with the bits of every stage, and a plan that equals the measurement.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/ir/parser.h"
#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"

namespace zg::testing {
namespace {

RunConfig Config(TestModel model) {
  RunConfig config;
  config.model = model;
  config.stage = 3;
  config.micro_batches = 8;
  config.steps = 2;
  return config;
}

// Elements that gathers of a section bring to a rank along a mesh axis, according to the executed
// graph.
int64_t GatheredAlong(const RunResult& result, ir::SectionKind section, const std::string& axis) {
  const StatusOr<ir::Graph> graph = ir::Parse(result.ir);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  int64_t elements = 0;
  for (const ir::Node* node : graph->section(section)->nodes) {
    if (node->op->name != "all_gather") continue;
    if (graph->mesh().axes()[node->attributes.Int("axis")].name != axis) continue;
    elements += graph->LocalType(*node->outputs[0]).shape.num_elements() -
                graph->LocalType(*node->inputs[0]).shape.num_elements();
  }
  return elements;
}

struct Setting {
  TestModel model = TestModel::kGpt;
  DType dtype = DType::kF32;
  double max_grad_norm = 0;
  std::string recompute;
};

class SecondaryShardsTest : public ::testing::TestWithParam<Setting> {};

INSTANTIATE_TEST_SUITE_P(Settings, SecondaryShardsTest,
                         ::testing::Values(Setting{TestModel::kGpt, DType::kF32, 0.5, ""},
                                           Setting{TestModel::kGpt, DType::kBF16, 0, "blocks.*"},
                                           Setting{TestModel::kLlama, DType::kF32, 0,
                                                   "model.layers.*"},
                                           Setting{TestModel::kMlp, DType::kBF16, 0.5, ""}),
                         [](const auto& info) {
                           const TestModel model = info.param.model;
                           return fmt::format("{}_{}",
                                              model == TestModel::kGpt     ? "gpt"
                                              : model == TestModel::kLlama ? "llama"
                                                                           : "mlp",
                                              DTypeName(info.param.dtype));
                         });

TEST_P(SecondaryShardsTest, GatherInsideAHostWithTheSameBits) {
  RunConfig config = Config(GetParam().model);
  config.dtype = GetParam().dtype;
  config.max_grad_norm = GetParam().max_grad_norm;
  config.recompute = GetParam().recompute;
  const RunResult one_rank = TrainOrDie(config);
  for (const std::vector<MeshAxis>& mesh : std::vector<std::vector<MeshAxis>>{
           {{"data", 2}, {"shard", 2}},
           {{"replica", 2}, {"data", 2}, {"shard", 2}},
           {{"data", 4}, {"shard", 1}},
           {{"data", 1}, {"shard", 4}},
       }) {
    SCOPED_TRACE(Mesh(mesh).ToString());
    config.mesh = mesh;
    config.ranks = Mesh(mesh).num_ranks();
    config.secondary_axis = "";
    const RunResult without = TrainOrDie(config);
    config.secondary_axis = "shard";
    const RunResult with = TrainOrDie(config);
    ExpectSameBits(one_rank, with);
    ExpectPlanIsMeasured(with, config.steps);
    const auto gathered = [](const RunResult& result, ir::SectionKind section, const char* axis) {
      return GatheredAlong(result, section, axis);
    };
    EXPECT_EQ(gathered(with, ir::SectionKind::kForward, "data"),
              gathered(without, ir::SectionKind::kForward, "data"));
    EXPECT_EQ(gathered(with, ir::SectionKind::kBackward, "data"), 0);
    if (Mesh(mesh).axes()[Mesh(mesh).FindAxis("data")].size > 1) {
      EXPECT_GT(gathered(without, ir::SectionKind::kBackward, "data"), 0);
    }
  }
}

// A rank receives only forward's gathers from other hosts.
TEST(SecondaryShards, SendAlongEachAxisWhatIsPlanned) {
  RunConfig config = Config(TestModel::kGpt);
  config.mesh = {{"data", 2}, {"shard", 2}};
  config.ranks = 4;
  std::vector<int64_t> between_hosts;  // along data alone, without and with secondary shards
  for (const char* secondary : {"", "shard"}) {
    SCOPED_TRACE(secondary);
    config.secondary_axis = secondary;
    const RunResult result = TrainOrDie(config);
    ExpectPlanIsMeasured(result, config.steps);
    for (const AxesTraffic& traffic : result.traffic_by_axes) {
      if (traffic.axes == "data") between_hosts.push_back(traffic.measured);
    }
  }
  ASSERT_EQ(between_hosts.size(), 2u);
  EXPECT_LT(between_hosts[1], between_hosts[0]);
}

TEST(SecondaryShards, WithParametersThatTensorSplits) {
  RunConfig config = Config(TestModel::kGpt);
  config.placement = {{"blocks.*.mlp.expand", "tensor", Sbp::S(0)},
                      {"blocks.*.mlp.contract.weight", "tensor", Sbp::S(1)}};
  config.mesh = {{"data", 2}, {"shard", 2}, {"tensor", 2}};
  config.ranks = 8;
  const RunResult without = TrainOrDie(config);
  config.secondary_axis = "shard";
  const RunResult with = TrainOrDie(config);
  ExpectSameBits(without, with);
  ExpectPlanIsMeasured(with, config.steps);
  EXPECT_EQ(GatheredAlong(with, ir::SectionKind::kBackward, "data"), 0);
}

TEST(SecondaryShards, AreRefusedWhereNothingIsGathered) {
  RunConfig config = Config(TestModel::kMlp);
  config.secondary_axis = "data";
  config.stage = 2;
  EXPECT_NE(Train(config).status().message().find("stage 2 keeps parameters whole"),
            std::string::npos);
  config.stage = 3;
  config.secondary_axis = "host";
  EXPECT_NE(
      Train(config).status().message().find("secondary axis host: parameters are not sharded"),
      std::string::npos);
}

}  // namespace
}  // namespace zg::testing
