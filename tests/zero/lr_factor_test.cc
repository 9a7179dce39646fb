// The learning rate changes from step to step without another program: the same Trainer gets
// another factor.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/ir/printer.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "framework/optim/schedule.h"
#include "models/classifier/model.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

// A trainer of a small model with SGD, and the steps that it takes.
class SmallRun {
 public:
  explicit SmallRun(double lr) : graph_("small"), group_(1) {
    RegisterAllOps();
    graph_.train(optim::Sgd{.lr = lr}, [&](Inputs& in) {
      return cross_entropy(model_(in.f32("x", {4, 12})), in.i64("y", {4}));
    });
    auto trainer = make_trainer(graph_, group_.communicator(0), {});
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    if (trainer.ok()) trainer_ = std::move(*trainer);
    for (size_t i = 0; i < x_.size(); ++i) x_[i] = static_cast<float>(i % 7) - 3.0f;
  }

  // The parameters after a step with this factor.
  std::string Step(double factor) {
    trainer_->set_lr_factor(factor);
    EXPECT_TRUE(trainer_->step({{"x", x_}, {"y", y_}}).ok());
    return Digest();
  }
  std::string Digest() { return trainer_->digest_parameters()->sha256; }
  std::string Program() { return Print(trainer_->executor().graph()); }

 private:
  models::Classifier model_{{12, 8, 3}};
  Graph graph_;
  InProcessGroup group_;
  std::unique_ptr<Trainer> trainer_;
  std::vector<float> x_ = std::vector<float>(4 * 12);
  std::vector<int64_t> y_ = {0, 1, 2, 1};
};

TEST(LrFactor, IsThatOfTheStepWithoutAnotherProgram) {
  SmallRun run(0.5);
  const std::string program = run.Program();
  const std::string start = run.Digest();
  EXPECT_EQ(run.Step(0.0), start);
  EXPECT_NE(run.Step(1.0), start);
  EXPECT_EQ(run.Program(), program);
}

// Two schedules one after the other, against trainers compiled for the rates.
TEST(LrFactor, ScalesTheOptimizersRate) {
  const optim::Schedule warmup = {optim::Schedule::Decay::kConstant, 2, 4, 0.0};
  const optim::Schedule halving = {optim::Schedule::Decay::kLinear, 0, 4, 0.0};
  SmallRun scheduled(0.5);
  SmallRun full(0.5);
  SmallRun half(0.25);
  // Factors 0.5 and 1, then 0.5 at the middle of the fall.
  EXPECT_EQ(warmup.factor(1), 0.5);
  EXPECT_EQ(halving.factor(2), 0.5);
  EXPECT_EQ(scheduled.Step(warmup.factor(1)), half.Step(1.0));
  EXPECT_EQ(scheduled.Step(warmup.factor(2)), half.Step(2.0));
  EXPECT_EQ(scheduled.Step(halving.factor(2)), half.Step(1.0));
  EXPECT_EQ(full.Step(0.5), SmallRun(0.25).Step(1.0));
}

}  // namespace
}  // namespace zg
