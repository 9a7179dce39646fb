// Buffers, and results of training beside the loss: the same bits at any stage, on any number of
// ranks, also when a checkpoint of one is read by another.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/passes/step_results.h"
#include "tests/testing/as_planned.h"
#include "tests/testing/results_on_ranks.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

constexpr int64_t kBatch = 4;
constexpr int64_t kWidth = 6;
constexpr int kMicroBatches = 6;  // of 1, 2 and 3 ranks
constexpr float kMomentum = 0.25f;

// x minus the mean over its micro-batch; in evals, minus the running mean.
struct Centered : nn::Module {
  using Module::Module;

  Var forward(Var x) override {
    if (!nn::is_training()) return x - mean;
    const Var batch_mean = zg::mean(x, {0});
    mean.update((1.0 - kMomentum) * Var(mean) + kMomentum * batch_mean);
    steps.update(Var(steps) + 1.0);
    return x - batch_mean;
  }

  nn::Buffer mean{this, "mean", {kWidth}, Initializer::Zeros()};
  nn::Buffer steps{this, "steps", {1}, Initializer::Zeros()};
};

struct Model : nn::Module {
  Var forward(Var x) override { return output(centered(x)); }

  Centered centered{this, "centered"};
  nn::Linear output{this, "output", kWidth, kWidth};
};

struct Config {
  int ranks = 1;
  int stage = 0;
  DType dtype = DType::kF32;
  bool sees_two_views = false;  // x and 2 x
};

struct Result {
  std::string parameters;  // including buffers
  std::vector<float> means;
  std::vector<float> steps;
  std::vector<float> error;     // a scalar result of the last step
  std::vector<float> outputs;   // of all its micro-batches
  std::vector<float> constant;  // shared by all micro-batches
  std::vector<float> predictions;
};

std::vector<float> Numbers(int64_t seed) {
  std::vector<float> numbers(kBatch * kWidth);
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>((seed * 37 + static_cast<int64_t>(i) * 11) % 17) / 8.0f - 1.0f;
  }
  return numbers;
}

class RankRun {
 public:
  RankRun(const Config& config, Communicator& communicator) : communicator_(communicator) {
    graph_.train(optim::AdamW{.lr = 0.02}, [&, config](Inputs& in) -> Outputs {
      const Var target = in.f32("target", {kBatch, kWidth});
      const Var x = in.f32("x", {kBatch, kWidth});
      Var y = model_(x);
      if (config.sees_two_views) y = y + model_(2.0 * x);
      return {{"loss", mse_loss(y, target)},
              {"error", mean(abs(y - target))},
              {"y", y},
              {"constant", Var(model_.output.weight) * 1.0}};
    });
    graph_.eval("predict", [&](Inputs& in) { return model_(in.f32("x", {kBatch, kWidth})); });
    graph_.config().zero.stage = config.stage;
    graph_.config().zero.bucket_bytes = 128;
    graph_.config().micro_batches = kMicroBatches;
    graph_.config().dtype = config.dtype;
  }

  Status Start() {
    ZG_ASSIGN_OR_RETURN(trainer_, make_trainer(graph_, communicator_));
    return Status::Ok();
  }

  Status TrainUntil(int64_t step) {
    while (trainer_->steps_done() < step) {
      const StatusOr<float> loss = trainer_->step([&](int64_t micro_batch) {
        const int64_t seed = trainer_->steps_done() * kMicroBatches + micro_batch;
        x_ = Numbers(seed);
        target_ = Numbers(seed + 100);
        return trainer_->feed({{"x", x_}, {"target", target_}});
      });
      ZG_RETURN_IF_ERROR(loss.status());
    }
    return Status::Ok();
  }

  StatusOr<Result> Finish() {
    Result result;
    ZG_ASSIGN_OR_RETURN(const TensorDigest digest, trainer_->digest_parameters());
    result.parameters = digest.sha256;
    ZG_ASSIGN_OR_RETURN(const NamedValues values, trainer_->consolidate_parameters());
    if (communicator_.rank() == 0) {
      result.means = values.at("centered.mean").values;
      result.steps = values.at("centered.steps").values;
    }
    ZG_ASSIGN_OR_RETURN(result.error, trainer_->step_result("error"));
    ZG_ASSIGN_OR_RETURN(result.outputs, trainer_->step_result("y"));
    ZG_ASSIGN_OR_RETURN(result.constant, trainer_->step_result("constant"));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> local, trainer_->local_step_result("y"));
    EXPECT_EQ(trainer_->executor().step_result_bytes(),
              StepResultBytes(trainer_->executor().graph()));
    EXPECT_GT(trainer_->executor().step_result_bytes(),
              static_cast<int64_t>(local.size() * sizeof(float)));
    const size_t part = kBatch * kWidth;
    EXPECT_EQ(local.size(), kMicroBatches / communicator_.size() * part);
    if (communicator_.rank() == 0) {
      EXPECT_TRUE(std::equal(local.begin(), local.begin() + part, result.outputs.begin()));
    }
    x_ = Numbers(1000 + communicator_.rank());
    ZG_RETURN_IF_ERROR(trainer_->eval("predict", {{"x", x_}}));
    ZG_ASSIGN_OR_RETURN(result.predictions, trainer_->result("predict"));
    testing::ExpectMemoryAsPlanned(trainer_->executor());
    return result;
  }

  Trainer& trainer() { return *trainer_; }

 private:
  Communicator& communicator_;
  Model model_;
  Graph graph_{"buffers"};
  std::unique_ptr<Trainer> trainer_;
  std::vector<float> x_, target_;
};

Result Train(const Config& config) {
  const auto train = [&](Communicator& communicator, Result* result) -> Status {
    RankRun run(config, communicator);
    ZG_RETURN_IF_ERROR(run.Start());
    ZG_RETURN_IF_ERROR(run.TrainUntil(3));
    ZG_ASSIGN_OR_RETURN(*result, run.Finish());
    return Status::Ok();
  };
  return testing::ResultsOnRanks<Result>(config.ranks, train)[0];
}

void ExpectSame(const Result& result, const Result& expected) {
  EXPECT_EQ(result.parameters, expected.parameters);
  EXPECT_EQ(result.means, expected.means);
  EXPECT_EQ(result.steps, expected.steps);
  EXPECT_EQ(result.error, expected.error);
  EXPECT_EQ(result.outputs, expected.outputs);
  EXPECT_EQ(result.constant, expected.constant);
  const size_t part = kBatch * kWidth;
  ASSERT_GE(result.predictions.size(), part);
  EXPECT_TRUE(std::equal(result.predictions.begin(), result.predictions.begin() + part,
                         expected.predictions.begin()));
}

TEST(Buffers, HaveTheSameBitsAtEveryStageOnAnyNumberOfRanks) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Result expected = Train({1, 0, dtype});
    ASSERT_EQ(expected.outputs.size(), static_cast<size_t>(kMicroBatches * kBatch * kWidth));
    ASSERT_EQ(expected.constant.size(), static_cast<size_t>(kWidth * kWidth));
    for (int ranks = 1; ranks <= 3; ++ranks) {
      for (int stage = 0; stage <= 3; ++stage) {
        SCOPED_TRACE(fmt::format("{}, {} ranks, stage {}", DTypeName(dtype), ranks, stage));
        ExpectSame(Train({ranks, stage, dtype}), expected);
      }
    }
  }
}

// The mean over a step's micro-batches of their next values, updated once a step, not once for
// each; `factor` is that of the mean of x.
void ExpectMeanOverTheStep(const Result& result, double factor) {
  EXPECT_EQ(result.steps, std::vector<float>{3});
  ASSERT_EQ(result.means.size(), static_cast<size_t>(kWidth));
  std::vector<double> expected(kWidth);
  for (int step = 0; step < 3; ++step) {
    std::vector<double> mean(kWidth);
    for (int micro_batch = 0; micro_batch < kMicroBatches; ++micro_batch) {
      const std::vector<float> x = Numbers((step + 1) * kMicroBatches + micro_batch);
      for (size_t i = 0; i < x.size(); ++i) mean[i % kWidth] += x[i] / (kBatch * kMicroBatches);
    }
    for (int64_t c = 0; c < kWidth; ++c) {
      expected[c] = (1.0 - kMomentum) * expected[c] + kMomentum * factor * mean[c];
    }
  }
  for (int64_t c = 0; c < kWidth; ++c) EXPECT_NEAR(result.means[c], expected[c], 1e-6);
}

TEST(Buffers, HoldTheMeanOverTheStep) { ExpectMeanOverTheStep(Train({2, 3}), 1.0); }

TEST(Buffers, OfAModuleThatIsCalledTwiceHoldTheMeanOfBothCalls) {
  const Config twice = {1, 0, DType::kF32, /*sees_two_views=*/true};
  const Result expected = Train(twice);
  ExpectMeanOverTheStep(expected, 1.5);
  ExpectSame(Train({3, 3, DType::kF32, true}), expected);
  ExpectSame(Train({2, 2, DType::kF32, true}), expected);
}

TEST(Buffers, AreInCheckpoints) {
  const std::string directory = ::testing::TempDir() + "/buffers";
  const Result expected = Train({1, 0});
  const Status status = RunRanks(2, [&](Communicator& communicator) -> Status {
    RankRun run({2, 3}, communicator);
    ZG_RETURN_IF_ERROR(run.Start());
    ZG_RETURN_IF_ERROR(run.TrainUntil(2));
    return run.trainer().save(directory);
  });
  ASSERT_TRUE(status.ok()) << status.message();
  const auto resume = [&](Communicator& communicator, Result* result) -> Status {
    RankRun run({3, 1}, communicator);
    ZG_RETURN_IF_ERROR(run.Start());
    ZG_RETURN_IF_ERROR(run.trainer().resume(directory));
    ZG_RETURN_IF_ERROR(run.TrainUntil(3));
    ZG_ASSIGN_OR_RETURN(*result, run.Finish());
    return Status::Ok();
  };
  ExpectSame(testing::ResultsOnRanks<Result>(3, resume)[0], expected);
}

}  // namespace
}  // namespace zg
