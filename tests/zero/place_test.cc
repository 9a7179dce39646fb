// zg::place in a model: a value lies along an axis whose ranks share micro-batches as the model says, with
// the bits of a rule that says it, and without a word on meshes without the axis.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/nn/nn.h"
#include "framework/plan/explain_placement.h"
#include "tests/testing/results_on_ranks.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBatch = 4;
constexpr int64_t kWidth = 6;
constexpr int kMicroBatches = 4;

enum class SaidBy { kNobody, kModel, kRule };

struct Model : nn::Module {
  explicit Model(bool places) : places(places) {}
  Var forward(Var x) override {
    Var h = up(x);
    if (places) h = place(h, "tensor", Sbp::S(1));
    return down(relu(h));
  }
  const bool places;
  nn::Linear up{this, "up", kWidth, 8};
  nn::Linear down{this, "down", 8, kWidth};
};

struct Config {
  SaidBy said_by = SaidBy::kNobody;
  std::vector<MeshAxis> mesh = {};
  int stage = 0;
};

struct Result {
  std::vector<float> losses;
  std::string parameters;
  std::string explanation;  // of what relu gives
};

std::string NameOfRelu(const ir::Graph& graph) {
  for (const ir::Node* node : graph.section(ir::SectionKind::kForward)->nodes) {
    if (node->op->name == "relu") return node->outputs[0]->name;
  }
  return "";
}

Result Train(const Config& config) {
  const int num_ranks = Mesh(config.mesh).num_ranks();
  return testing::ResultsOnRanks<Result>(
      num_ranks, [&](Communicator& communicator, Result* result) -> Status {
        Model model(config.said_by == SaidBy::kModel);
        Graph graph("placed");
        graph.train(optim::AdamW{.lr = 0.02}, [&](Inputs& in) {
          return mse_loss(model(in.f32("x", {kBatch, kWidth})), in.f32("y", {kBatch, kWidth}));
        });
        graph.config().mesh = config.mesh;
        graph.config().micro_batches = kMicroBatches;
        graph.config().zero.stage = config.stage;
        if (graph.config().MeshOf(num_ranks).FindAxis("tensor") >= 0) {
          graph.config().place("down.weight", "tensor", Sbp::S(1));
        }
        if (config.said_by == SaidBy::kRule) {
          graph.config().place_results("up", "tensor", Sbp::S(1));
        }
        ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator, {}));
        std::vector<float> x(kBatch * kWidth), y(kBatch * kWidth);
        for (int64_t step = 0; step < 3; ++step) {
          ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
            for (size_t i = 0; i < x.size(); ++i) {
              x[i] = static_cast<float>((7 * i + 5 * micro_batch + step) % 13) / 6.0f - 1.0f;
              y[i] = static_cast<float>((3 * i + micro_batch) % 11) / 5.0f - 1.0f;
            }
            return trainer->feed({{"x", x}, {"y", y}});
          }));
          result->losses.push_back(loss);
        }
        ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer->digest_parameters());
        result->parameters = parameters.sha256;
        const Program& program = trainer->program();
        ZG_ASSIGN_OR_RETURN(result->explanation,
                            plan::ExplainPlacement(program, NameOfRelu(program.graph)));
        return Status::Ok();
      })[0];
}

void ExpectSame(const Result& expected, const Result& got) {
  EXPECT_EQ(got.losses, expected.losses);
  EXPECT_EQ(got.parameters, expected.parameters);
}

TEST(Place, SplitsWhatFollowsAndHasTheBitsOfARule) {
  const Result expected = Train({SaidBy::kModel, {{"tensor", 2}}});
  EXPECT_THAT(expected.explanation, HasSubstr("  tensor=2: S(1)\n"));
  for (const std::vector<MeshAxis>& mesh : std::vector<std::vector<MeshAxis>>{
           {{"tensor", 2}}, {{"data", 2}, {"tensor", 2}}, {{"replica", 2}, {"tensor", 2}}}) {
    for (const SaidBy said_by : {SaidBy::kModel, SaidBy::kRule}) {
      for (int stage = 0; stage <= 3; ++stage) {
        SCOPED_TRACE(fmt::format("{}, stage {}, said by the {}", Mesh(mesh).ToString(), stage,
                                 said_by == SaidBy::kModel ? "model" : "rule"));
        const Result got = Train({said_by, mesh, stage});
        ExpectSame(expected, got);
        EXPECT_THAT(got.explanation, HasSubstr("  tensor=2: S(1)\n"));
      }
    }
  }
}

TEST(Place, IsNothingOnAMeshWithoutTheAxis) {
  for (const int ranks : {1, 2}) {
    ExpectSame(Train({SaidBy::kNobody, {{"data", ranks}}}),
               Train({SaidBy::kModel, {{"data", ranks}}}));
  }
}

// Nobody says it: the value is whole.
TEST(Place, IsWhatSplits) {
  EXPECT_THAT(Train({SaidBy::kNobody, {{"tensor", 2}}}).explanation, HasSubstr("  tensor=2: B\n"));
}

}  // namespace
}  // namespace zg
