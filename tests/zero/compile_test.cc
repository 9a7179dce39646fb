// Compile is a function: it does not change the graph, and the same graph compiles for any stage
// and mesh.
#include "zero/compile.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/format.h"
#include "framework/ir/printer.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/nn/nn.h"
#include "framework/passes/same_variables.h"
#include "framework/runtime/plan_program.h"
#include "models/classifier/model.h"
#include "zero/stages_that_fit.h"

namespace zg::zero {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CompileTest : public ::testing::Test {
 protected:
  CompileTest() {
    const auto loss = [&](Inputs& in) {
      return cross_entropy(model_(in.f32("x", {4, 256})), in.i64("y", {4}));
    };
    graph_.train(optim::Sgd{0.1, 0.9}, loss);
    graph_.eval("validate", loss);
    graph_.config().zero.bucket_bytes = 4096;
  }

  StatusOr<Program> CompileAt(int stage, int ranks) const {
    CompileOptions options = graph_.config();
    options.zero.stage = stage;
    return Compile(graph_, Mesh::DataParallel(ranks), options, TargetOf(CpuKernels()));
  }

  models::Classifier model_{{256, 128, 10}};
  Graph graph_{"classifier"};
};

TEST_F(CompileTest, OneGraphCompilesAtEveryStageOnAnyRanks) {
  const std::string traced = Print(graph_.ir());
  for (int ranks = 1; ranks <= 4; ++ranks) {
    int64_t stage0_bytes = 0;
    for (int stage = 0; stage <= 3; ++stage) {
      SCOPED_TRACE(fmt::format("{} ranks, stage {}", ranks, stage));
      const StatusOr<Program> program = CompileAt(stage, ranks);
      ASSERT_TRUE(program.ok()) << program.status().message();
      EXPECT_EQ(program->graph.mesh().num_ranks(), ranks);
      EXPECT_EQ(program->options.zero.stage, stage);
      EXPECT_EQ(program->options.micro_batches, ranks);
      EXPECT_EQ(program->num_parameters, graph_.num_parameters());
      EXPECT_GT(program->flops, 0);
      EXPECT_EQ(program->traffic.empty(), ranks == 1);
      if (ranks > 1 && stage > 0) {
        EXPECT_LT(program->memory.arena_bytes, stage0_bytes);
      }
      if (stage == 0) stage0_bytes = program->memory.arena_bytes;
      EXPECT_EQ(Print(graph_.ir()), traced);
    }
  }
}

TEST_F(CompileTest, EqualArgumentsGiveEqualPrograms) {
  const StatusOr<Program> first = CompileAt(2, 3);
  ASSERT_TRUE(CompileAt(3, 2).ok());
  const StatusOr<Program> again = CompileAt(2, 3);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(Print(first->graph), Print(again->graph));
  EXPECT_EQ(first->memory.arena_bytes, again->memory.arena_bytes);
  EXPECT_EQ(first->settings, again->settings);
}

// A step of the larger size needs more; both keep the same variables at the same places.
TEST(CompileSizes, ShareTheVariables) {
  struct Model : nn::Module {
    nn::Linear first{this, "first", 6, 6};
    nn::Linear last{this, "last", 6, 6};
    Var forward(Var x) override { return last(first(x)); }
  } model;
  const auto compile = [&](bool trains_at_every_size, int64_t max_bytes) {
    Graph graph("sized");
    graph.train(optim::Adam{}, {8, 4}, [&](Inputs& in, int64_t size) {
      const Var hidden = model.first(in.f32("x", {size, 6}));
      const bool trains = trains_at_every_size || size == 8;
      return mean(square(model.last(trains ? hidden : stop_gradient(hidden))));
    });
    graph.eval("run", [&](Inputs& in) { return model(in.f32("x", {2, 6})); });
    CompileOptions options;
    options.zero.stage = 2;
    options.zero.shard_min_elements = 0;
    options.max_memory_bytes = max_bytes;
    return Compile(graph, Mesh::DataParallel(2), options, TargetOf(CpuKernels()));
  };
  const StatusOr<Program> program = compile(true, CompileOptions::kUnlimitedBytes);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(program->variant.size, 8);
  ASSERT_EQ(program->other_variants.size(), 1);
  const Program& smaller = program->other_variants[0];
  EXPECT_EQ(smaller.variant.size, 4);
  EXPECT_LT(smaller.flops, program->flops);
  EXPECT_LT(smaller.memory.arena_bytes, program->memory.arena_bytes);
  EXPECT_EQ(program->settings.at("inputs"), "x: f32[8,6]; or x: f32[4,6]");
  EXPECT_TRUE(CheckSameVariables(*program, smaller).ok());
  // The arena has room for the largest.
  const StatusOr<Program> little = compile(true, program->memory.arena_bytes - 1);
  EXPECT_THAT(little.status().message(),
              HasSubstr(FormatExactBytes(program->memory.arena_bytes) + ", but `max_memory` is"));
  const StatusOr<Program> other = compile(false, CompileOptions::kUnlimitedBytes);
  EXPECT_THAT(other.status().message(),
              HasSubstr("graph sized: size 4 does not train its parameters as size 8 does"));
}

TEST_F(CompileTest, SettingsSayWhatDecidesTheBits) {
  const StatusOr<Program> program = CompileAt(2, 3);
  ASSERT_TRUE(program.ok());
  const std::map<std::string, std::string> expected = {
      {"clip-norm", "0"},
      {"inputs", "x: f32[4,256], y: i64[4]"},
      {"micro-batches", "3"},
      {"optimizer", "sgd_momentum_update lr=0.1 momentum=0.9 nesterov=false weight_decay=0.0"},
      {"reduce-every", "micro-batch"}};
  EXPECT_EQ(program->settings, expected);
}

TEST_F(CompileTest, RefusesWhatDoesNotWork) {
  graph_.config().micro_batches = 3;
  EXPECT_EQ(
      CompileAt(0, 2).status().message(),
      "graph classifier: micro_batches: 3 micro-batches per step do not divide among 2 ranks; "
      "use a multiple of 2, such as 4");
  Graph eval_only("eval");
  eval_only.eval("run", [](Inputs& in) { return in.f32("x", {2}); });
  eval_only.config().recompute = {"blocks.*"};
  const auto compile = [](const Graph& graph) {
    return Compile(graph, Mesh::DataParallel(2), graph.config(), TargetOf(CpuKernels())).status();
  };
  EXPECT_EQ(compile(eval_only).message(),
            "graph eval: recompute 'blocks.*' is for training, but train() was not called");
  EXPECT_EQ(compile(Graph("empty")).message(),
            "graph empty: neither train() nor eval() was called");
  const KernelRegistry none;
  EXPECT_THAT(Compile(graph_, Mesh::DataParallel(1), {}, TargetOf(none)).status().message(),
              HasSubstr("kernel"));
}

TEST_F(CompileTest, MoreThanTheMemoryLimitIsAnErrorThatNamesStagesThatFit) {
  const int64_t stage0 = CompileAt(0, 2)->memory.arena_bytes;
  const int64_t stage3 = CompileAt(3, 2)->memory.arena_bytes;
  graph_.config().max_memory_bytes = stage0;
  EXPECT_TRUE(CompileAt(0, 2).ok());
  graph_.config().max_memory_bytes = stage3;
  const Status error = CompileAt(0, 2).status();
  EXPECT_EQ(error.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      error.message(),
      AllOf(HasSubstr(fmt::format("graph classifier: a rank needs {}, but `max_memory` is {}",
                                  FormatExactBytes(stage0), FormatExactBytes(stage3))),
            HasSubstr(fmt::format("hint: per rank, stage 3 needs {}, which would fit",
                                  FormatExactBytes(stage3)))));
  EXPECT_TRUE(CompileAt(3, 2).ok());
  graph_.config().max_memory_bytes = 0;
  EXPECT_EQ(CompileAt(0, 2).status().message(),
            "graph classifier: max_memory_bytes: got 0, expected at least 1");
}

TEST_F(CompileTest, TheHintNamesExactBytesOfTheStagesThatFit) {
  const Target target = TargetOf(CpuKernels());
  const StatusOr<Program> program = CompileAt(0, 2);
  ASSERT_TRUE(program.ok());
  int64_t bytes[4];
  for (int stage = 0; stage <= 3; ++stage) {
    bytes[stage] = CompileAt(stage, 2)->memory.arena_bytes;
  }
  const auto hint = [&](int64_t available) {
    return StagesThatFit(graph_, *program, target, available);
  };
  EXPECT_EQ(hint(bytes[0]), "");
  EXPECT_THAT(hint(bytes[1]), AllOf(HasSubstr(fmt::format("({} bytes)", bytes[1])),
                                    HasSubstr(fmt::format("({} bytes)", bytes[3]))));
  EXPECT_THAT(hint(bytes[3]), AllOf(Not(HasSubstr("stage 1")), HasSubstr("stage 3 needs")));
  EXPECT_THAT(hint(bytes[3] - 1),
              HasSubstr(fmt::format("({} bytes) per rank; more ranks", bytes[3])));
  const StatusOr<Program> alone = CompileAt(0, 1);
  ASSERT_TRUE(alone.ok());
  EXPECT_THAT(StagesThatFit(graph_, *alone, target, 0), HasSubstr("this is one rank"));
  graph_.config().overlap_communication();
  const StatusOr<Program> ahead = CompileAt(3, 2);
  ASSERT_TRUE(ahead.ok());
  ASSERT_GT(ahead->memory.arena_bytes, bytes[3]);
  EXPECT_EQ(
      StagesThatFit(graph_, *ahead, target, bytes[3]),
      fmt::format("without overlap it needs {}, which would fit", FormatExactBytes(bytes[3])));
  EXPECT_THAT(StagesThatFit(graph_, *ahead, target, bytes[3] - 1), HasSubstr("no stage fits"));
}

}  // namespace
}  // namespace zg::zero
