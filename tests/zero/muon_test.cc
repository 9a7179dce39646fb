// Muon updates whole matrices, each on the rank that owns it: with the same bits at every stage and
// on any number of ranks, and with AdamW's traffic. Other optimizers can have owners, too.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "framework/passes/plan_memory.h"
#include "framework/passes/predict_traffic.h"
#include "models/gpt/model.h"
#include "tests/zero/expect_run.h"
#include "tests/zero/training.h"
#include "zero/compile.h"

namespace zg::testing {
namespace {

using ::testing::HasSubstr;

const optim::Muon kMuon = {.lr = 0.02, .weight_decay = 0.1, .of_vectors = {.lr = 0.003}};

struct Setting {
  std::string name;
  TestModel model = TestModel::kMlp;
  std::optional<optim::Optimizer> optimizer = {};
  std::vector<optim::ParameterGroup> groups = {};
  DType dtype = DType::kF32;
  Partition partition = Partition::kEven;
};

std::vector<Setting> AllSettings() {
  const std::vector<optim::ParameterGroup> hidden = {{"hidden", "blocks", kMuon}};
  return {
      {"muon_mlp", TestModel::kMlp, kMuon},
      {"muon_gpt", TestModel::kGpt, std::nullopt, hidden},
      {"muon_gpt_bf16", TestModel::kGpt, std::nullopt, hidden, DType::kBF16},
      {"greedy_adam_mlp", TestModel::kMlp, std::nullopt, {}, DType::kF32, Partition::kGreedy},
      {"balanced_adafactor_gpt",
       TestModel::kGpt,
       optim::Adafactor{.lr = 0.02},
       {},
       DType::kF32,
       Partition::kBalanced},
      {"greedy_lamb_mlp",
       TestModel::kMlp,
       optim::Lamb{.lr = 0.02},
       {},
       DType::kF32,
       Partition::kGreedy},
  };
}

class MuonTest : public ::testing::TestWithParam<Setting> {
 protected:
  static RunConfig Config(int64_t micro_batches) {
    RunConfig config;
    config.model = GetParam().model;
    config.optimizer = GetParam().optimizer;
    config.groups = GetParam().groups;
    config.dtype = GetParam().dtype;
    config.partition = GetParam().partition;
    config.micro_batches = micro_batches;
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(Settings, MuonTest, ::testing::ValuesIn(AllSettings()),
                         [](const auto& info) { return info.param.name; });

TEST_P(MuonTest, HasTheSameBitsAtEveryStageOnOneToEightRanks) {
  for (const auto& [micro_batches, ranks] : std::vector<std::pair<int64_t, std::vector<int>>>{
           {24, {1, 2, 3, 4, 6, 8}}, {35, {1, 5, 7}}}) {
    RunConfig config = Config(micro_batches);
    config.steps = 2;
    ExpectSameOnRanks(ranks, config, TrainOrDie(config));
  }
}

// A limit adds a control, which the updates read; and a mesh of two data axes has parts of parts.
TEST_P(MuonTest, HasTheSameBitsWithALimitOnTwoAxesAndInOtherBuckets) {
  RunConfig config = Config(4);
  config.max_grad_norm = 0.5;
  const RunResult expected = TrainOrDie(config);
  config.ranks = 4;
  for (const std::vector<MeshAxis>& mesh :
       std::vector<std::vector<MeshAxis>>{{{"data", 2}, {"replica", 2}},
                                          {{"replica", 2}, {"shard", 2}},
                                          {{"data", 2}, {"shard", 2}}}) {
    config.mesh = mesh;
    for (int stage = 0; stage <= 3; ++stage) {
      SCOPED_TRACE(fmt::format("{}, stage {}", Mesh(mesh).ToString(), stage));
      config.stage = stage;
      config.bucket_bytes = stage % 2 == 0 ? 256 : 1 << 20;
      const RunResult result = TrainOrDie(config);
      ExpectSameBits(expected, result);
      ExpectPlanIsMeasured(result, config.steps);
    }
  }
}

// The bytes that one rank sends in a step of a GPT whose blocks have this optimizer.
int64_t SentBytes(const optim::Optimizer& of_blocks, int64_t layers, int ranks, int stage) {
  RegisterAllOps();
  models::Gpt model(
      {.layers = layers, .heads = 2, .channels = 64, .context = 16, .vocabulary = 64});
  Graph graph("gpt");
  graph.train(optim::AdamW{}, [&](Inputs& in) {
    return cross_entropy(model(in.i64("x", {2, 16})), in.i64("y", {2, 16}));
  });
  graph.add_parameter_group({"matrices", "blocks.**.weight", of_blocks});
  graph.add_parameter_group({"norms", "blocks.*.norm*", optim::AdamW{}});
  graph.config().zero.stage = stage;
  const StatusOr<Program> program = zero::Compile(graph, Mesh::DataParallel(ranks), graph.config(),
                                                  [](const ir::Graph&) { return MemoryPlan(); });
  EXPECT_TRUE(program.ok()) << program.status().message();
  int64_t bytes = 0;
  if (program.ok()) {
    for (const auto& [op, traffic] : program->traffic) bytes += traffic.bytes;
  }
  return bytes;
}

TEST(Muon, SendsWhatAdamWSendsAtEveryStage) {
  for (const auto& [ranks, layers] : {std::pair(2, 2), std::pair(3, 3), std::pair(4, 3)}) {
    for (int stage = 0; stage <= 3; ++stage) {
      SCOPED_TRACE(fmt::format("{} ranks, stage {}", ranks, stage));
      EXPECT_EQ(SentBytes(optim::Muon{}, layers, ranks, stage),
                SentBytes(optim::AdamW{}, layers, ranks, stage));
    }
  }
}

std::string ErrorOf(const optim::Muon& muon) {
  nn::Module root;
  nn::Linear layer(&root, "layer", 3, 2);
  Graph graph("g");
  graph.train(muon, [&](Inputs& in) {
    return mse_loss(layer(in.f32("x", {4, 3})), in.f32("y", {4, 2}));
  });
  return graph.status().message();
}

TEST(Muon, RejectsHyperparametersThatMakeNoRule) {
  RegisterAllOps();
  EXPECT_EQ(ErrorOf({}), "");
  EXPECT_THAT(ErrorOf({.lr = -1.0}), HasSubstr("Muon: lr is -1, expected a finite number >= 0"));
  EXPECT_THAT(ErrorOf({.momentum = 1.0}),
              HasSubstr("Muon: momentum is 1, expected 0 <= momentum < 1"));
  EXPECT_THAT(ErrorOf({.steps = 100}), HasSubstr("Muon: steps is 100, expected 0 <= steps < 100"));
  EXPECT_THAT(ErrorOf({.of_vectors = {.beta1 = 2}}), HasSubstr("Muon's of_vectors: AdamW: beta1"));
}

TEST(Muon, RejectsWhatIsNeitherVectorNorMatrix) {
  RegisterAllOps();
  nn::Module root;
  nn::Conv2d layer(&root, "layer", 2, 3, 3);
  Graph graph("g");
  graph.train(optim::Muon{}, [&](Inputs& in) { return mean(layer(in.f32("x", {1, 2, 5, 5}))); });
  const StatusOr<Program> program = zero::Compile(graph, Mesh::DataParallel(1), graph.config(),
                                                  [](const ir::Graph&) { return MemoryPlan(); });
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(program.status().message(), HasSubstr("layer"));
  EXPECT_THAT(program.status().message(),
              HasSubstr("muon_update: p is f32[3,2,3,3], expected a matrix"));
}

// Parts of a matrix, which a placement rule makes, have no update.
TEST(Muon, RejectsMatricesThatAreSplit) {
  RunConfig config;
  config.ranks = 2;
  config.mesh = {{"tensor", 2}};
  config.model = TestModel::kGpt;
  config.groups = {{"hidden", "blocks", kMuon}};
  config.placement = {{"blocks.*.mlp.expand", "tensor", Sbp::S(0)},
                      {"blocks.*.mlp.contract.weight", "tensor", Sbp::S(1)}};
  const StatusOr<RunResult> result = Train(config);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.status().message(), HasSubstr("muon_update"));
  EXPECT_THAT(result.status().message(), HasSubstr("looks at the whole tensor, not at its parts"));
}

}  // namespace
}  // namespace zg::testing
