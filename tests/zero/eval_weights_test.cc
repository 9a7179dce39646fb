// Eval programs read the average of weights, at every stage and on any number of ranks with the same
// bits, in f32 and bf16; the average is saved, and training does not read it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

constexpr int kMicroBatches = 6;

struct Config {
  int ranks = 1;
  int stage = 0;
  DType dtype = DType::kF32;
  std::string resume = {};
  std::string save = {};
};

struct Result {
  std::vector<float> losses;
  float eval_loss = 0;
  std::string parameters;
  std::string state;
};

StatusOr<Result> Train(const optim::Optimizer& optimizer, const Config& config) {
  RegisterAllOps();
  std::vector<Result> results(config.ranks);
  ZG_RETURN_IF_ERROR(RunRanks(config.ranks, [&](Communicator& communicator) -> Status {
    Result& result = results[communicator.rank()];
    nn::Module root;
    nn::Linear hidden(&root, "hidden", 5, 8);
    nn::Linear last(&root, "last", 8, 3);
    const auto loss = [&](Inputs& in) {
      return mse_loss(last(relu(hidden(in.f32("x", {2, 5})))), in.f32("y", {2, 3}));
    };
    Graph graph("averages");
    graph.train(optimizer, loss);
    graph.eval("validate", loss);
    graph.config().zero.stage = config.stage;
    graph.config().zero.bucket_bytes = 128;
    graph.config().micro_batches = kMicroBatches;
    graph.config().dtype = config.dtype;
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator));
    if (!config.resume.empty()) ZG_RETURN_IF_ERROR(trainer->resume(config.resume));
    std::vector<float> x(10);
    std::vector<float> y(6);
    const auto fill = [&](int64_t number) {
      for (size_t i = 0; i < x.size(); ++i) x[i] = 0.1f * static_cast<float>((i * 3 + number) % 7);
      for (size_t i = 0; i < y.size(); ++i) y[i] = 0.3f * static_cast<float>((i + number) % 3);
    };
    while (trainer->steps_done() < 4) {
      ZG_ASSIGN_OR_RETURN(const float step_loss, trainer->step([&](int64_t micro_batch) {
        fill(trainer->steps_done() + micro_batch);
        return trainer->feed({{"x", x}, {"y", y}});
      }));
      result.losses.push_back(step_loss);
      if (!config.save.empty() && trainer->steps_done() == 2) {
        ZG_RETURN_IF_ERROR(trainer->save(config.save));
      }
    }
    fill(1);  // the same on every rank
    ZG_RETURN_IF_ERROR(trainer->eval("validate", {{"x", x}, {"y", y}}));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> eval_loss, trainer->result("validate"));
    result.eval_loss = eval_loss[0];
    ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer->digest_parameters());
    ZG_ASSIGN_OR_RETURN(const TensorDigest state, trainer->digest_optimizer_state());
    result.parameters = parameters.sha256;
    result.state = state.sha256;
    return Status::Ok();
  }));
  return results[0];
}

Result MustTrain(const optim::Optimizer& optimizer, const Config& config) {
  const StatusOr<Result> result = Train(optimizer, config);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : Result();
}

optim::Rule Averaging() { return optim::with_ema(optim::rule_of(optim::AdamW{.lr = 0.05}), 0.7); }

TEST(EvalWeights, SameBitsAtEveryStageAndOnAnyNumberOfRanks) {
  for (const optim::Optimizer& optimizer :
       {optim::Optimizer(Averaging()), optim::Optimizer(optim::ScheduleFreeAdamW{.lr = 0.05})}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      const Result one = MustTrain(optimizer, {1, 0, dtype});
      for (const int ranks : {2, 3}) {
        float eval_loss = 0;
        for (int stage = 0; stage <= 3; ++stage) {
          SCOPED_TRACE(fmt::format("{}, {} ranks, stage {}", DTypeName(dtype), ranks, stage));
          const Result other = MustTrain(optimizer, {ranks, stage, dtype});
          EXPECT_EQ(other.losses, one.losses);
          if (stage == 0) eval_loss = other.eval_loss;
          EXPECT_EQ(other.eval_loss, eval_loss);
          EXPECT_FLOAT_EQ(other.eval_loss, one.eval_loss);  // a mean over the ranks
          EXPECT_EQ(other.parameters, one.parameters);
          EXPECT_EQ(other.state, one.state);
        }
      }
    }
  }
}

TEST(EvalWeights, AreNotThoseThatAreTrained) {
  const Result plain = MustTrain(optim::rule_of(optim::AdamW{.lr = 0.05}), {});
  const Result averaged = MustTrain(Averaging(), {});
  EXPECT_EQ(averaged.losses, plain.losses);
  EXPECT_EQ(averaged.parameters, plain.parameters);
  EXPECT_NE(averaged.eval_loss, plain.eval_loss);
  // An average with only the latest weights equals these weights.
  const Result last = MustTrain(optim::with_ema(optim::rule_of(optim::AdamW{.lr = 0.05}), 0.0), {});
  EXPECT_EQ(last.eval_loss, plain.eval_loss);
}

TEST(EvalWeights, AreInCheckpoints) {
  const std::string directory = ::testing::TempDir() + "/averages";
  std::filesystem::remove_all(directory);
  const Result whole = MustTrain(Averaging(), {2, 1, DType::kF32, "", directory});
  const Result resumed = MustTrain(Averaging(), {3, 3, DType::kF32, directory});
  EXPECT_FLOAT_EQ(resumed.eval_loss, whole.eval_loss);
  EXPECT_EQ(resumed.state, whole.state);
}

}  // namespace
}  // namespace zg
