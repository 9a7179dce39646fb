// Training functions read the average of weights (nn::AveragedParameters): target networks and teachers.
// The bits are the same at every stage and on any number of ranks, and eagerly; values are compared with
// formulas written out here.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/eager/eager.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

constexpr int kMicroBatches = 6;
constexpr int kSteps = 4;
constexpr double kDecay = 0.75;

optim::Rule Averaging(double decay = kDecay) {
  return optim::with_ema(optim::rule_of(optim::Sgd{0.1}), decay);
}

struct Config {
  int ranks = 1;
  int stage = 0;
  DType dtype = DType::kF32;
  bool update_early = false;
  std::vector<std::string> recompute = {};
  int micro_batches = kMicroBatches;
};

struct Result {
  std::vector<float> losses;
  std::string parameters;
  std::string state;
  float averaged = 0, trained = 0;  // losses of eval programs
};

// A student that is drawn to its teacher's outputs for other inputs; gradients pass through the teacher
// to a layer below, which both read.
struct Student : nn::Module {
  nn::Linear below{this, "below", 5, 6};
  nn::Linear hidden{this, "hidden", 6, 8};
  nn::LayerNorm norm{this, "norm", 8};
  nn::Linear last{this, "last", 8, 3};
  Var forward(Var x) override { return last(norm(relu(hidden(x)))); }
};

Var Loss(Student& student, Inputs& in) {
  const Var own = student(student.below(in.f32("x", {2, 5})));
  Var wanted = student.below(in.f32("other", {2, 5}));
  {
    const nn::AveragedParameters averaged(student);
    wanted = student(wanted);
  }
  return mse_loss(own, wanted) + mse_loss(own, in.f32("y", {2, 3}));
}

Result Train(const optim::Optimizer& optimizer, const Config& config) {
  RegisterAllOps();
  std::vector<Result> results(config.ranks);
  const Status status = RunRanks(config.ranks, [&](Communicator& communicator) -> Status {
    Result& result = results[communicator.rank()];
    Student student;
    Graph graph("averages");
    graph.train(optimizer, [&](Inputs& in) { return Loss(student, in); });
    graph.eval("averaged", [&](Inputs& in) {
      return mean(student(student.below(in.f32("x", {2, 5}))));
    });
    graph.eval("trained", [&](Inputs& in) {
      const nn::TrainedParameters trained(student);
      return mean(student(student.below(in.f32("x", {2, 5}))));
    });
    graph.config().zero.stage = config.stage;
    graph.config().zero.bucket_bytes = 128;
    graph.config().micro_batches = config.micro_batches;
    graph.config().dtype = config.dtype;
    graph.config().update_early = config.update_early;
    graph.config().recompute = config.recompute;
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator));
    std::vector<float> x(10), other(10), y(6);
    const auto fill = [&](int64_t number) {
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = 0.1f * static_cast<float>((i * 3 + number) % 7);
        other[i] = 0.2f * static_cast<float>((i + 2 * number) % 5);
      }
      for (size_t i = 0; i < y.size(); ++i) y[i] = 0.3f * static_cast<float>((i + number) % 3);
    };
    while (trainer->steps_done() < kSteps) {
      ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
        fill(trainer->steps_done() + micro_batch);
        return trainer->feed({{"x", x}, {"other", other}, {"y", y}});
      }));
      result.losses.push_back(loss);
    }
    fill(1);  // the same on every rank
    ZG_RETURN_IF_ERROR(trainer->eval("averaged", {{"x", x}}));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> averaged, trainer->result("averaged"));
    ZG_RETURN_IF_ERROR(trainer->eval("trained", {{"x", x}}));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> trained, trainer->result("trained"));
    result.averaged = averaged[0];
    result.trained = trained[0];
    ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer->digest_parameters());
    ZG_ASSIGN_OR_RETURN(const TensorDigest state, trainer->digest_optimizer_state());
    result.parameters = parameters.sha256;
    result.state = state.sha256;
    const Executor& executor = trainer->executor();
    EXPECT_EQ(executor.meter().peak_bytes(), executor.plan().arena_bytes);
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return results[0];
}

void ExpectSame(const Result& got, const Result& wanted) {
  EXPECT_EQ(got.losses, wanted.losses);
  EXPECT_EQ(got.parameters, wanted.parameters);
  EXPECT_EQ(got.state, wanted.state);
  EXPECT_FLOAT_EQ(got.averaged, wanted.averaged);  // means over the ranks
  EXPECT_FLOAT_EQ(got.trained, wanted.trained);
}

TEST(AveragedParameters, SameBitsAtEveryStageAndOnAnyNumberOfRanks) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Result one = Train(Averaging(), {1, 0, dtype});
    EXPECT_NE(one.averaged, one.trained);
    for (const int ranks : {2, 3}) {
      for (int stage = 0; stage <= 3; ++stage) {
        SCOPED_TRACE(fmt::format("{}, {} ranks, stage {}", DTypeName(dtype), ranks, stage));
        ExpectSame(Train(Averaging(), {ranks, stage, dtype}), one);
      }
    }
    SCOPED_TRACE("recomputed");
    ExpectSame(Train(Averaging(), {2, 3, dtype, false, {"hidden", "last"}}), one);
  }
}

TEST(AveragedParameters, AreReadBeforeUpdatesThatAreEarly) {
  for (const int stage : {0, 2, 3}) {
    ExpectSame(Train(Averaging(), {2, stage, DType::kF32, true, {}, 2}),
               Train(Averaging(), {2, stage, DType::kF32, false, {}, 2}));
  }
}

EagerOptions Training() {
  EagerOptions options;
  options.training = true;
  return options;
}

// One weight w, whose gradient is 2 (w x - average x) x of the mean over two samples.
struct Scale : nn::Module {
  nn::Parameter w{this, "w", {1}, Initializer::Ones()};
  Var forward(Var x) override { return w * x; }
};

Var LossOf(Scale& scale, Var x) {
  Var wanted;
  {
    const nn::AveragedParameters averaged(scale);
    wanted = scale(x);
  }
  return mse_loss(scale(x), wanted + 1.0);
}

TEST(AveragedParameters, FollowTheFormula) {
  RegisterAllOps();
  Scale scale;
  Graph graph("formula");
  graph.train(Averaging(), [&](Inputs& in) { return LossOf(scale, in.f32("x", {2})); });
  graph.eval("averaged", [&](Inputs&) { return Var(scale.w) * 1.0; });
  graph.eval("trained", [&](Inputs&) {
    const nn::TrainedParameters trained(scale);
    return Var(scale.w) * 1.0;
  });
  const std::vector<float> x = {0.5f, 2.0f};
  const Status status = RunRanks(1, [&](Communicator& communicator) -> Status {
    ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator));
    double w = 1, average = 1;
    for (int step = 0; step < 5; ++step) {
      ZG_ASSIGN_OR_RETURN(const float loss, trainer->step({{"x", x}}));
      double expected = 0, slope = 0;
      for (const double sample : x) {
        const double error = w * sample - average * sample - 1.0;
        expected += error * error / 2;
        slope += error * sample;
      }
      EXPECT_NEAR(loss, expected, 1e-6);
      w -= 0.1 * slope;
      average = kDecay * average + (1.0 - kDecay) * w;
      for (const auto& [name, wanted] : {std::pair("trained", w), std::pair("averaged", average)}) {
        ZG_RETURN_IF_ERROR(trainer->eval(name, {}));
        ZG_ASSIGN_OR_RETURN(const std::vector<float> got, trainer->result(name));
        EXPECT_NEAR(got[0], wanted, 1e-6) << name << ", step " << step;
      }
    }
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(AveragedParameters, AreThoseOfEager) {
  RegisterAllOps();
  const std::vector<float> x = {0.5f, 2.0f};
  std::vector<float> eagerly;
  {
    Scale scale;
    Eager eager(Training());
    for (int step = 0; step < 4; ++step) {
      const Tensor loss = LossOf(scale, eager.f32({2}, x));
      eagerly.push_back(loss.item());
      loss.backward();
      eager.step(Averaging());
    }
    eager.set_training(false);
    const Tensor average = Var(scale.w) * 1.0;
    const nn::TrainedParameters trained(scale);
    EXPECT_NE(average.item(), Tensor(Var(scale.w) * 1.0).item());
  }
  Scale scale;
  Graph graph("graph");
  graph.train(Averaging(), [&](Inputs& in) { return LossOf(scale, in.f32("x", {2})); });
  const Status status = RunRanks(1, [&](Communicator& communicator) -> Status {
    ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator));
    for (const float expected : eagerly) {
      ZG_ASSIGN_OR_RETURN(const float loss, trainer->step({{"x", x}}));
      EXPECT_EQ(loss, expected);
    }
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

// A parameter may read as a function of itself, and values may replace it; both see the average.
TEST(AveragedParameters, AreWhatOtherReadsBeginFrom) {
  RegisterAllOps();
  Scale scale;
  scale.w.reads_as([](Var p) { return exp(p); });
  Eager eager(Training());
  const auto step = [&] {
    const Tensor loss = mean(scale(eager.f32({2}, {1, 2})));
    loss.backward();
    eager.step(Averaging());
  };
  step();
  const auto read = [&] { return Tensor(Var(scale.w) * 1.0).item(); };
  const float trained = read();
  const nn::ParameterValues doubled(scale, [](const nn::Parameter& p) { return 2.0 * p; });
  EXPECT_FLOAT_EQ(read(), 2 * trained);
  const nn::AveragedParameters averaged(scale);
  const double w = std::log(trained), average = kDecay * 1.0 + (1.0 - kDecay) * w;
  EXPECT_FLOAT_EQ(read(), static_cast<float>(2 * std::exp(average)));
}

TEST(AveragedParameters, OfFrozenParametersAreTheirValues) {
  RegisterAllOps();
  Scale scale;
  nn::Module root;
  nn::Linear other(&root, "other", 1, 1);
  Graph graph("frozen");
  graph.train(Averaging(), [&](Inputs& in) {
    const Var x = in.f32("x", {2});
    return LossOf(scale, x) + mean(other(reshape(x, {2, 1})));
  });
  graph.freeze("w");
  const std::vector<float> x = {0.5f, 2.0f};
  const Status status = RunRanks(1, [&](Communicator& communicator) -> Status {
    ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator));
    return trainer->step({{"x", x}}).status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(AveragedParameters, CanBeWritten) {
  RegisterAllOps();
  const std::string path = ::testing::TempDir() + "/averaged.safetensors";
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Status status = RunRanks(2, [&](Communicator& communicator) -> Status {
      Student student;
      Graph graph("written");
      const auto output = [&](Inputs& in) { return student(student.below(in.f32("x", {2, 5}))); };
      graph.train(Averaging(), [&](Inputs& in) { return mean(square(output(in) - 1.0)); });
      graph.eval("predict", output);
      graph.freeze("norm.*");
      graph.config().zero.stage = 3;
      graph.config().dtype = dtype;
      ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator));
      const std::vector<float> x(10, 0.5f);
      for (int step = 0; step < 3; ++step) ZG_RETURN_IF_ERROR(trainer->step({{"x", x}}).status());
      ZG_RETURN_IF_ERROR(trainer->eval("predict", {{"x", x}}));
      ZG_ASSIGN_OR_RETURN(const std::vector<float> expected, trainer->local_result("predict"));
      ZG_RETURN_IF_ERROR(trainer->save_parameters(path, nullptr, Trainer::Weights::kAveraged));

      Graph loaded("loaded");  // without averages
      loaded.eval("predict", output);
      loaded.config().dtype = dtype;
      ZG_ASSIGN_OR_RETURN(const auto reader, make_trainer(loaded, communicator));
      ZG_RETURN_IF_ERROR(reader->load_parameters(path));
      ZG_RETURN_IF_ERROR(reader->eval("predict", {{"x", x}}));
      ZG_ASSIGN_OR_RETURN(const std::vector<float> got, reader->local_result("predict"));
      EXPECT_EQ(got, expected);
      EXPECT_FALSE(reader->averaged_parameters().ok());
      return Status::Ok();
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(AveragedParameters, NeedAnOptimizerThatKeepsThem) {
  RegisterAllOps();
  Scale scale;
  Graph graph("none");
  graph.train(optim::Sgd{0.1}, [&](Inputs& in) { return LossOf(scale, in.f32("x", {2})); });
  const Status status = RunRanks(
      1, [&](Communicator& communicator) { return make_trainer(graph, communicator).status(); });
  EXPECT_NE(
      status.message().find("training reads the average of 'w', and its optimizer keeps none"),
      std::string::npos)
      << status.message();
  EXPECT_DEATH(
      {
        Scale eager_scale;
        Eager eager(Training());
        for (int step = 0; step < 2; ++step) {
          const Tensor loss = LossOf(eager_scale, eager.f32({2}, {1, 2}));
          loss.backward();
          eager.step(optim::Sgd{0.1});
        }
      },
      "AveragedParameters: the optimizer of the steps so far keeps no average of 'w'");
}

}  // namespace
}  // namespace zg
