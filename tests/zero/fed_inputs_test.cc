// What a trainer is fed: each micro-batch and eval needs all of its inputs, of their dtypes. And what a
// step that fails leaves behind: nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "framework/runtime/plan_program.h"
#include "framework/train/trainer.h"
#include "zero/compile.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using Data = std::vector<NamedData>;

struct Model : nn::Module {
  Var forward(Var ids) override { return output(table(ids)); }

  nn::Embedding table{this, "table", 4, 3};
  nn::Linear output{this, "output", 3, 1};
};

class FedInputs : public ::testing::Test {
 protected:
  void Start(int64_t micro_batches) {
    RegisterAllOps();
    graph_.train(optim::Adam{0.1}, [&](Inputs& in) {
      const Var y = in.f32("y", {2, 1});
      return mse_loss(model_(in.i64("ids", {2})), y);
    });
    graph_.eval("predict", [&](Inputs& in) { return model_(in.i64("ids", {2})); });
    graph_.config().micro_batches = micro_batches;
    Restart();
  }

  void Restart() {
    auto trainer = make_trainer(graph_, group_.communicator(0), {});
    ASSERT_TRUE(trainer.ok()) << trainer.status().ToString();
    trainer_ = std::move(*trainer);
  }

  std::string Error(const StatusOr<float>& loss) {
    return loss.ok() ? "" : std::string(loss.status().message());
  }

  Model model_;
  Graph graph_{"fed"};
  InProcessGroup group_{1};
  std::unique_ptr<Trainer> trainer_;
  const std::vector<int64_t> ids_ = {1, 3};
  const std::vector<float> y_ = {0.5f, -1.0f};
};

TEST_F(FedInputs, AreForgottenAfterTheStep) {
  Start(1);
  ASSERT_TRUE(trainer_->step({{"ids", ids_}, {"y", y_}}).ok());
  EXPECT_EQ(Error(trainer_->step(Data{{"y", y_}})), "step 2, input: input \"ids\" was not set");
  EXPECT_EQ(Error(trainer_->step(Data{{"ids", ids_}})), "step 2, input: input \"y\" was not set");
  ASSERT_TRUE(trainer_->eval("predict", {{"ids", ids_}}).ok());
  EXPECT_EQ(trainer_->eval("predict", {}).message(),
            "eval predict, input: input \"ids\" was not set");
}

TEST_F(FedInputs, AreForgottenAfterEachMicroBatch) {
  Start(2);
  EXPECT_EQ(Error(trainer_->step([&](int64_t micro_batch) {
              return micro_batch == 0 ? trainer_->feed({{"ids", ids_}, {"y", y_}}) : Status::Ok();
            })),
            "step 1, input: input \"ids\" was not set");
}

TEST_F(FedInputs, AreCopiedWithinAStep) {
  Start(2);
  const StatusOr<float> kept = trainer_->step([&](int64_t) {
    return trainer_->feed({{"ids", ids_}, {"y", y_}});
  });
  Restart();
  const StatusOr<float> local = trainer_->step([&](int64_t) {
    std::vector<int64_t> ids = ids_;
    std::vector<float> y = y_;
    const Status fed = trainer_->feed({{"ids", ids}, {"y", y}});
    ids.assign(2, 77);
    y.assign(2, 1e9f);
    return fed;
  });
  ASSERT_TRUE(kept.ok() && local.ok());
  EXPECT_EQ(*local, *kept);
}

TEST_F(FedInputs, AreGivenOnce) {
  Start(1);
  EXPECT_EQ(Error(trainer_->step(Data{{"ids", ids_}, {"y", y_}, {"ids", ids_}})),
            "input \"ids\": it is given twice; give each input once");
  ASSERT_TRUE(trainer_->step({{"ids", ids_}, {"y", y_}}).ok());
}

TEST_F(FedInputs, WhatTheProgramThrowsIsAnError) {
  Start(1);
  EXPECT_EQ(Error(trainer_->step([](int64_t) -> Status { throw std::runtime_error("no more"); })),
            "feeding data: the program threw: no more");
  ASSERT_TRUE(trainer_->step({{"ids", ids_}, {"y", y_}}).ok());
}

TEST_F(FedInputs, TheFactorOfTheLearningRateIsANumber) {
  Start(1);
  for (const double factor : {-0.5, std::nan(""), HUGE_VAL}) {
    trainer_->set_lr_factor(factor);
    EXPECT_NE(Error(trainer_->step({{"ids", ids_}, {"y", y_}})).find("a learning rate factor of"),
              std::string::npos);
  }
  trainer_->set_lr_factor(0.0);
  ASSERT_TRUE(trainer_->step({{"ids", ids_}, {"y", y_}}).ok());
}

TEST_F(FedInputs, HaveTheDeclaredDType) {
  Start(1);
  const std::vector<int64_t> whole = {1};  // as many bytes as y
  EXPECT_EQ(Error(trainer_->step({{"ids", ids_}, {"y", whole}})),
            "input \"y\": got i64, expected f32[2,1]");
  const std::vector<float> four(4);
  EXPECT_EQ(trainer_->eval("predict", {{"ids", four}}).message(),
            "input \"ids\": got f32, expected i64[2]");
  const Data twice = {{"ids", ids_}, {"ids", ids_}};
  EXPECT_NE(trainer_->eval("predict", twice).message().find("it is given twice"),
            std::string::npos);
  EXPECT_TRUE(trainer_->eval("predict", {{"ids", ids_}}).ok());
}

TEST_F(FedInputs, MayBePartsOfLongerArrays) {
  Start(1);
  const std::vector<int64_t> ids = {0, 1, 3, 2};
  const std::vector<float> y = {7.0f, 0.5f, -1.0f};
  const StatusOr<float> loss = trainer_->step({{"ids", ids.data() + 1, 2}, {"y", y.data() + 1, 2}});
  ASSERT_TRUE(loss.ok()) << loss.status().ToString();
  Trainer* const first = trainer_.get();
  const std::string digest = first->digest_parameters()->sha256;
  trainer_.reset();
  Restart();
  EXPECT_EQ(*trainer_->step({{"ids", ids_}, {"y", y_}}), *loss);
  EXPECT_EQ(trainer_->digest_parameters()->sha256, digest);
}

// Nothing reads them, so that programs have no memory for them.
TEST(UnusedInputs, MayBeFed) {
  RegisterAllOps();
  InProcessGroup group(1);
  const nn::Linear linear(nullptr, "m", 2, 1);
  Graph graph("unused");
  graph.train(optim::Sgd{0.1}, [&](Inputs& in) {
    in.i64("unused", {3});
    return mean(square(zg::linear(in.f32("x", {2, 2}), linear.weight)));
  });
  graph.eval("predict", [&](Inputs& in) {
    in.f32("unused", {1});
    return zg::linear(in.f32("x", {2, 2}), linear.weight);
  });
  const auto trainer = make_trainer(graph, group.communicator(0), {});
  ASSERT_TRUE(trainer.ok()) << trainer.status().ToString();
  const std::vector<float> x = {1, 2, 3, 4}, one = {1};
  const std::vector<int64_t> three = {1, 2, 3};
  EXPECT_TRUE((*trainer)->step({{"x", x}, {"unused", three}}).ok());
  EXPECT_TRUE((*trainer)->eval("predict", {{"x", x}, {"unused", one}}).ok());
  EXPECT_EQ((*trainer)->step({{"x", x}, {"other", one}}).status().message(),
            "graph unused: it has no input \"other\"; it has x");
}

TEST_F(FedInputs, AStepThatFailsDoesNotCount) {
  Start(1);
  EXPECT_EQ(trainer_->step(std::function<Status(int64_t)>()).status().message(),
            "step 1: got an empty function that feeds the micro-batches");
  ASSERT_TRUE(trainer_->step({{"ids", ids_}, {"y", y_}}).ok());
  const std::string digest = trainer_->digest_parameters()->sha256;
  const std::vector<int64_t> unknown = {1, 9};
  EXPECT_NE(Error(trainer_->step({{"ids", unknown}, {"y", y_}})), "");
  EXPECT_EQ(trainer_->steps_done(), 1);
  EXPECT_EQ(trainer_->num_updates(), 1);
  EXPECT_EQ(trainer_->digest_parameters()->sha256, digest);
}

// The order in which a program uses inputs depends on its settings; what a checkpoint says of them does
// not, so that another dtype or number of ranks may resume it.
TEST(InputsOfCheckpoints, HaveOneOrder) {
  RegisterAllOps();
  const nn::Linear linear(nullptr, "m", 8, 8);
  Graph graph("inputs");
  graph.train(optim::Adam{0.1}, [&](Inputs& in) {
    const Var a = in.f32("a", {4, 8}), b = in.f32("b", {4, 8});
    const Var decay = sum(square(linear.weight));
    return mean(square(zg::linear(a - b, linear.weight))) + 1e-4 * decay;
  });
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int ranks : {1, 2}) {
      CompileOptions options = graph.config();
      options.dtype = dtype;
      options.micro_batches = 2;
      options.zero.stage = 3;
      const StatusOr<Program> program =
          zero::Compile(graph, Mesh::DataParallel(ranks), options, TargetOf(CpuKernels()));
      ASSERT_TRUE(program.ok()) << program.status().ToString();
      EXPECT_EQ(program->settings.at("inputs"), "a: f32[4,8], b: f32[4,8]");
    }
  }
}

}  // namespace
}  // namespace zg
