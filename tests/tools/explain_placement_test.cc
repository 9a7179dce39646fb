// The chain of reasons for a value's placement ends at its origin.
#include "framework/plan/explain_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/nn/nn.h"
#include "framework/runtime/plan_program.h"
#include "models/classifier/model.h"
#include "zero/compile.h"

namespace zg::plan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ExplainPlacementTest : public ::testing::Test {
 protected:
  ExplainPlacementTest() {
    graph_.train(optim::Adam{}, [&](Inputs& in) {
      return cross_entropy(model_(in.f32("x", {4, 16})), in.i64("y", {4}));
    });
    CompileOptions options = graph_.config();
    options.zero.stage = 1;
    options.mesh = {{"data", 2}, {"tensor", 2}};
    options.place("hidden", "tensor", Sbp::S(0));
    options.place("output.weight", "tensor", Sbp::S(1));
    program_ = *zero::Compile(graph_, Mesh(options.mesh), options, TargetOf(CpuKernels()));
  }

  std::string Explain(std::string_view value) const {
    const StatusOr<std::string> text = ExplainPlacement(program_, value);
    return text.ok() ? *text : "error: " + text.status().message();
  }

  models::Classifier model_{{16, 8, 4}};
  Graph graph_{"classifier"};
  Program program_;
};

TEST_F(ExplainPlacementTest, EndsAtRulesStagesAndInputs) {
  const ir::Section& forward = *program_.graph.section(ir::SectionKind::kForward);
  std::string hidden;
  for (const ir::Node* node : forward.nodes) {
    if (node->scope == "hidden" && node->op->traits.kind == ir::OpKind::kCompute) {
      hidden = node->outputs[0]->name;
    }
  }
  EXPECT_THAT(Explain(hidden),
              AllOf(HasSubstr("  data=2: S(0)\n"),
                    HasSubstr("%x is S(0): the input \"x\" has this placement\n"),
                    HasSubstr("  tensor=2: S(1)\n"), HasSubstr(" -> {S(1)}, as its input %"),
                    HasSubstr("the rule 'hidden tensor=S(0)' of hidden.")));
  EXPECT_THAT(Explain("%x"), HasSubstr("is the same for the ranks along the axis"));
}

TEST_F(ExplainPlacementTest, SaysWhatZeroShards) {
  for (const ir::Node* node : program_.graph.section(ir::SectionKind::kVariables)->nodes) {
    const ir::Value& variable = *node->outputs[0];
    const std::string text = Explain(variable.name);
    switch (ir::RoleOf(variable)) {
      case Role::kParameter:
        EXPECT_THAT(text, HasSubstr("parameter, which ZeRO shards from stage 3 on, and this is 1"));
        break;
      case Role::kOptimizerState:
        EXPECT_THAT(text, HasSubstr("optimizer_state, which ZeRO shards at stage 1"));
        break;
      default:
        break;
    }
  }
}

TEST_F(ExplainPlacementTest, AllIsALineForEveryValue) {
  const std::string text = Explain("all");
  int64_t num_values = 0;
  for (const ir::Node* node : program_.graph.AllNodes()) {
    num_values += static_cast<int64_t>(node->outputs.size());
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), num_values);
  EXPECT_THAT(text,
              HasSubstr("%x: f32[8,16] {S(0),B}; data: the input \"x\" has this placement; "
                        "tensor: the input \"x\" is the same for the ranks along the axis\n"));
  EXPECT_THAT(text, HasSubstr("; tensor: the rule 'hidden tensor=S(0)' of hidden."));
  EXPECT_THAT(text, HasSubstr(", which ZeRO shards at stage 1; tensor: "));
}

TEST(ExplainPlacement, LongChainsShowTheirEnds) {
  Graph graph("chain");
  nn::Linear last(nullptr, "last", 16, 4);
  graph.train(optim::Adam{}, [&](Inputs& in) {
    Var x = in.f32("x", {4, 16});
    for (int i = 0; i < 12; ++i) x = sin(softmax(x));
    return cross_entropy(last(x), in.i64("y", {4}));
  });
  const StatusOr<Program> program =
      zero::Compile(graph, Mesh::DataParallel(2), graph.config(), TargetOf(CpuKernels()));
  ASSERT_TRUE(program.ok()) << program.status().message();
  std::string loss;
  for (const ir::Node* node : program->graph.section(ir::SectionKind::kForward)->nodes) {
    if (node->op->name == "softmax_cross_entropy_with_grad") loss = node->outputs[0]->name;
  }
  const StatusOr<std::string> text = ExplainPlacement(*program, loss);
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_THAT(*text, AllOf(HasSubstr(" steps more\n"), HasSubstr("the input \"x\"")));
  EXPECT_EQ(std::count(text->begin(), text->end(), '\n'), 2 + 4 + 1 + 4);
}

TEST_F(ExplainPlacementTest, UnknownValuesAreErrors) {
  EXPECT_EQ(Explain("%nothing"),
            "error: the program has no value %nothing; `dump_directory` shows its values");
  EXPECT_THAT(Explain("%bucket"), HasSubstr("the program has no value %bucket; it has %bucket0"));
}

}  // namespace
}  // namespace zg::plan
