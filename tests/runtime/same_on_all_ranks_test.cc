#include "framework/runtime/same_on_all_ranks.h"

#include <gtest/gtest.h>

#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

// The values that one rank passes.
struct Given {
  double factor = 1.0;
  std::vector<float> table = {0, 1, 2};
  std::vector<int64_t> ids = {0, 1};
  bool has_table = true;
};

// A model with inputs that are the same on all ranks, in training and in an eval.
struct SmallModel {
  struct Net : nn::Module {
    nn::Linear linear{this, "linear", 3, 3};
  } net;
  Graph graph{"small"};

  SmallModel() {
    RegisterAllOps();
    graph.train(optim::Sgd{.lr = 0.1}, [&](Inputs& in) {
      const Var x = add(in.f32("x", {2, 3}), in.f32("table", {3}, Sbp::B()));
      return cross_entropy(net.linear(x), in.i64("y", {2}));
    });
    graph.eval("look", [&](Inputs& in) {
      const Var first = in.f32("first", {2, 3}, Sbp::B());
      return net.linear(add(first, in.f32("table", {3}, Sbp::B())));
    });
  }
};

// The error of a step, which must be the same on every rank; empty if there is none. `given` is by
// rank.
std::string StepError(const std::vector<Given>& given) {
  std::vector<std::string> errors(given.size());
  const Status status =
      RunRanks(static_cast<int>(given.size()), [&](Communicator& communicator) -> Status {
        SmallModel model;
        const Given& mine = given[communicator.rank()];
        ZG_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer,
                            make_trainer(model.graph, communicator, {}));
        const std::vector<float> x(6, static_cast<float>(communicator.rank()));
        trainer->set_lr_factor(mine.factor);
        errors[communicator.rank()] =
            trainer
                ->step([&](int64_t) {
                  const Status status = trainer->feed({{"x", x}, {"y", mine.ids}});
                  if (!status.ok() || !mine.has_table) return status;
                  return trainer->feed({{"table", mine.table}});
                })
                .status()
                .message();
        return Status::Ok();
      });
  EXPECT_TRUE(status.ok()) << status.message();
  for (const std::string& error : errors) EXPECT_EQ(error, errors[0]);
  return errors[0];
}

TEST(SameOnAllRanks, WhatDiffersLegallyIsNoError) {
  EXPECT_EQ(StepError({{}, {.ids = {2, 2}}}), "");
  EXPECT_EQ(StepError({{.factor = 0.5}, {.factor = 0.5}, {.factor = 0.5}}), "");
}

TEST(SameOnAllRanks, FactorsOfTheLearningRate) {
  EXPECT_EQ(StepError({{}, {}, {.factor = 0.25}}),
            "step 1: the factor of the learning rate is 0.25 on rank 2, but 1 on rank 0; set the "
            "same on every rank");
}

TEST(SameOnAllRanks, InputsWithPlacementB) {
  EXPECT_EQ(
      StepError({{}, {.table = {0, 1.5, 2}}}),
      "step 1: input \"table\": its element 1 is 1.5 on rank 1 and 1 on "
      "rank 0, but it has placement B; feed them the same, or give the input a placement S(dim)");
}

// Every rank learns of it, and none waits for another.
TEST(SameOnAllRanks, InputsThatWereNotSet) {
  EXPECT_EQ(StepError({{}, {.has_table = false}, {}}),
            "step 1: input \"table\" was not set on rank 1; feed it on every rank");
  EXPECT_EQ(StepError({{.has_table = false}, {.has_table = false}}),
            "step 1: input \"table\" was not set on rank 0; feed it on every rank");
}

TEST(SameOnAllRanks, InputsOfRanksThatShareMicroBatches) {
  const Status status = RunRanks(4, [](Communicator& communicator) -> Status {
    struct Net : nn::Module {
      nn::Linear linear{this, "linear", 3, 4};
    } net;
    Graph graph("shared");
    graph.train(optim::Sgd{.lr = 0.1}, [&](Inputs& in) {
      return cross_entropy(net.linear(in.f32("x", {2, 3})), in.i64("y", {2}));
    });
    graph.config().mesh = {{"data", 2}, {"tensor", 2}};
    graph.config().place("linear", "tensor", Sbp::S(0));
    ZG_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator, {}));
    std::vector<float> x(6, static_cast<float>(trainer->data_rank()));
    const std::vector<int64_t> y = {0, 1};
    ZG_RETURN_IF_ERROR(trainer->step({{"x", x}, {"y", y}}).status());
    x[4] += communicator.rank() == 3 ? 0.5f : 0.0f;
    EXPECT_EQ(
        trainer->step({{"x", x}, {"y", y}}).status().message(),
        "step 2: input \"x\": its element 4 is 1.5 on rank 3 and 1 on rank 2, but these ranks "
        "share micro-batches; feed them the same, by Trainer::data_rank()");
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(SameOnAllRanks, InputsOfAnEvalSection) {
  const Status status = RunRanks(2, [&](Communicator& communicator) -> Status {
    SmallModel model;
    ZG_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer,
                        make_trainer(model.graph, communicator, {}));
    std::vector<float> first(6, 7.0f);
    const std::vector<float> table(3, 1.0f);
    ZG_RETURN_IF_ERROR(trainer->eval("look", {{"first", first}, {"table", table}}));
    first[4] += static_cast<float>(communicator.rank());
    EXPECT_EQ(
        trainer->eval("look", {{"first", first}, {"table", table}}).message(),
        "eval look: input \"first\": its element 4 is 8 on rank 1 and 7 on "
        "rank 0, but it has placement B; feed them the same, or give the input a placement S(dim)");
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace zg
