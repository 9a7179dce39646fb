// Results of eval sections: they are in the arena and its plan, each rank has its part, and they
// are gathered on request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/comm/in_process.h"
#include "framework/ir/printer.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "models/classifier/model.h"
#include "tests/testing/as_planned.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kBatch = 4;
constexpr int64_t kInputs = 12;
constexpr int64_t kClasses = 3;

// A small classifier that predicts and validates.
struct SmallRun {
  models::Classifier model{{kInputs, 8, kClasses}};
  Graph graph{"small"};
  std::vector<float> x = std::vector<float>(kBatch * kInputs);
  std::vector<int64_t> y = {0, 1, 2, 1};
  std::unique_ptr<Trainer> trainer;

  explicit SmallRun(int stage) {
    RegisterAllOps();
    const auto loss = [&](Inputs& in) {
      return cross_entropy(model(in.f32("x", {kBatch, kInputs})), in.i64("y", {kBatch}));
    };
    graph.train(optim::Sgd{.lr = 0.1}, loss);
    graph.eval("predict", [&](Inputs& in) { return model(in.f32("x", {kBatch, kInputs})); });
    graph.eval("validate", loss);
    graph.config().enable_zero({.stage = stage});
  }

  Status Start(Communicator& communicator) {
    ZG_ASSIGN_OR_RETURN(trainer, make_trainer(graph, communicator, {}));
    return Status::Ok();
  }
  // Samples of micro-batch `index`, whatever the rank.
  void Fill(int64_t index) {
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>((static_cast<int64_t>(i) * 7 + index * 5) % 11) - 5.0f;
    }
  }
  StatusOr<std::vector<float>> Predict() {
    ZG_RETURN_IF_ERROR(trainer->eval("predict", {{"x", x}}));
    return trainer->local_result("predict");
  }
};

// Before training, on one rank that sees all micro-batches one after the other.
std::vector<std::vector<float>> Expected(int num_micro_batches) {
  std::vector<std::vector<float>> expected;
  const Status status = RunRanks(1, [&](Communicator& communicator) -> Status {
    SmallRun run(/*stage=*/0);
    ZG_RETURN_IF_ERROR(run.Start(communicator));
    for (int i = 0; i < num_micro_batches; ++i) {
      run.Fill(i);
      ZG_ASSIGN_OR_RETURN(expected.emplace_back(), run.Predict());
    }
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return expected;
}

TEST(EvalResult, EveryRankHasItsPartAndOneGathersTheWhole) {
  for (const int ranks : {1, 2, 3}) {
    const std::vector<std::vector<float>> expected = Expected(ranks);
    std::vector<float> expected_whole;
    for (const auto& part : expected) {
      expected_whole.insert(expected_whole.end(), part.begin(), part.end());
    }
    const int to = ranks - 1;
    const Status status = RunRanks(ranks, [&](Communicator& communicator) -> Status {
      SmallRun run(/*stage=*/ranks == 3 ? 3 : 1);
      ZG_RETURN_IF_ERROR(run.Start(communicator));
      run.Fill(communicator.rank());
      ZG_ASSIGN_OR_RETURN(const std::vector<float> local, run.Predict());
      EXPECT_EQ(local, expected[communicator.rank()]);
      ZG_ASSIGN_OR_RETURN(const std::vector<float> whole,
                          run.trainer->result("predict", "result", to));
      EXPECT_EQ(whole, communicator.rank() == to ? expected_whole : std::vector<float>());
      return Status::Ok();
    });
    EXPECT_TRUE(status.ok()) << ranks << " ranks: " << status.message();
  }
}

TEST(EvalResult, AScalarIsTheMeanOverAllRanksOnEveryRank) {
  const auto validate = [](int ranks) {
    std::vector<float> losses(ranks);
    const Status status = RunRanks(ranks, [&](Communicator& communicator) -> Status {
      SmallRun run(/*stage=*/0);
      ZG_RETURN_IF_ERROR(run.Start(communicator));
      run.Fill(communicator.rank());
      ZG_RETURN_IF_ERROR(run.trainer->eval("validate", {{"x", run.x}, {"y", run.y}}));
      ZG_ASSIGN_OR_RETURN(const std::vector<float> loss, run.trainer->result("validate"));
      losses[communicator.rank()] = loss.at(0);
      return Status::Ok();
    });
    EXPECT_TRUE(status.ok()) << status.message();
    return losses;
  };
  const std::vector<float> one = validate(1);
  const std::vector<float> two = validate(2);
  EXPECT_EQ(two[0], two[1]);
  EXPECT_NE(two[0], one[0]);
}

// The section sends nothing at stage 0, and its results are in the plan.
TEST(EvalResult, LiesInThePlannedArena) {
  const Status status = RunRanks(2, [&](Communicator& communicator) -> Status {
    SmallRun run(/*stage=*/0);
    ZG_RETURN_IF_ERROR(run.Start(communicator));
    ZG_RETURN_IF_ERROR(run.trainer->step({{"x", run.x}, {"y", run.y}}).status());
    ZG_RETURN_IF_ERROR(run.Predict().status());
    ZG_RETURN_IF_ERROR(run.trainer->eval("validate", {{"x", run.x}, {"y", run.y}}));
    const Executor& executor = run.trainer->executor();
    testing::ExpectMemoryAsPlanned(executor);
    const std::string text = ir::Print(executor.graph());
    const size_t predict = text.find("eval \"predict\"");
    EXPECT_THAT(text.substr(predict, text.find("eval \"validate\"") - predict),
                Not(HasSubstr("all_gather")));
    const ir::Node* output = nullptr;
    for (const ir::Node* node : executor.graph().NodesOf(ir::OpKind::kOutput)) {
      if (node->section->name == "predict") output = node;
    }
    const PlannedBuffer& buffer =
        executor.plan().buffers[executor.plan().storage.Of(output->inputs[0]).buffer];
    EXPECT_GE(buffer.bytes, kBatch * kClasses * static_cast<int64_t>(sizeof(float)));
    EXPECT_LE(buffer.first, executor.graph().IndexOf(output));
    EXPECT_EQ(buffer.last, executor.graph().IndexOf(output));
    EXPECT_EQ(output, output->section->nodes.back());
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(EvalResult, IsThereUntilTheNextRun) {
  InProcessGroup group(1);
  SmallRun run(/*stage=*/0);
  ASSERT_TRUE(run.Start(group.communicator(0)).ok());
  Trainer& trainer = *run.trainer;
  const auto error = [&](std::string_view eval, std::string_view result = "result") {
    return trainer.local_result(eval, result).status().message();
  };
  ASSERT_TRUE(run.Predict().ok());
  EXPECT_EQ(error("validate"),
            "graph small, eval validate: its result \"result\" is not there: it is kept until the "
            "next run, and another eval ran last; run the eval, then take its results");
  EXPECT_EQ(error("predict", "logits"), "graph small, eval predict: it has no result \"logits\"");
  EXPECT_EQ(error("nope"),
            "graph small: it has no eval program \"nope\"; it has predict, validate");
  EXPECT_EQ(trainer.result("predict", "result", 1).status().message(),
            "result \"result\": got rank 1, expected one of 0 to 0");
  EXPECT_EQ(error("predict"), "");
  ASSERT_TRUE(trainer.step({{"x", run.x}, {"y", run.y}}).ok());
  EXPECT_THAT(error("predict"), HasSubstr("and a step ran last"));
}

}  // namespace
}  // namespace zg
