// Random values in eval programs: others in each run and after each step, the same on any number of ranks,
// after a resumed checkpoint, and eagerly.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/eager/eager.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "tests/testing/results_on_ranks.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using Values = std::vector<float>;

constexpr int kMicroBatches = 2;
constexpr int kRuns = 4;  // of each eval program, over all ranks

// Encodes to a mean, and decodes a sample around it.
struct Autoencoder : nn::Module {
  nn::Linear encode{this, "encode", 3, 2};
  nn::Linear decode{this, "decode", 2, 3};
  Var forward(Var x) override {
    const Var center = encode(x);
    return decode(center + normal(center));
  }
};

std::vector<float> Data(int64_t micro_batch) {
  std::vector<float> data;
  for (int i = 0; i < 6; ++i) data.push_back(0.25f * static_cast<float>((i + micro_batch) % 5));
  return data;
}

NamedData Input(const std::vector<float>& data) { return {"x", data}; }

std::unique_ptr<Graph> MakeGraph(Autoencoder& model, int stage) {
  auto graph = std::make_unique<Graph>("draws");
  graph->train(optim::Sgd{0.1}, [&](Inputs& in) {
    const Var x = in.f32("x", {2, 3});
    const Var y = model(x);
    return Outputs{{"loss", mse_loss(y, x)}, {"y", y}};
  });
  graph->eval("reconstruct", [&](Inputs& in) { return model(in.f32("x", {2, 3})); });
  graph->eval("loss", [&](Inputs& in) {
    const Var x = in.f32("x", {2, 3});
    return mse_loss(model(x), x);
  });
  // Without data of a micro-batch.
  graph->eval("sample", [&](Inputs&) { return model.decode(normal(zeros({2, 2}))); });
  graph->eval("choose", [&](Inputs& in) {
    return categorical(in.f32("logits", {4, 8}, Sbp::B()));
  });
  graph->config().zero.stage = stage;
  graph->config().micro_batches = kMicroBatches;
  return graph;
}

// The results of kRuns runs over all ranks, one behind the other.
StatusOr<Values> RunEvals(Trainer& trainer, const std::string& eval) {
  Values all;
  const Values logits(32, 0.0f);
  const int ranks = trainer.num_data_ranks();
  for (int run = 0; run < kRuns; run += ranks) {
    const Values x = Data(run + trainer.data_rank());
    std::vector<NamedData> data;
    if (eval == "choose") data = {{"logits", logits}};
    if (eval == "reconstruct" || eval == "loss") data = {Input(x)};
    ZG_RETURN_IF_ERROR(trainer.eval(eval, data));
    ZG_ASSIGN_OR_RETURN(const Values values, trainer.result(eval));
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

Status TakeStep(Trainer& trainer) {
  Values x;
  return trainer
      .step([&](int64_t micro_batch) {
        x = Data(micro_batch);
        return trainer.feed({Input(x)});
      })
      .status();
}

struct Result {
  Values reconstructed, sampled, chosen, trained;  // before the first step; in it
  Values after_step, resumed;
  float loss = 0;  // mean over the runs
};

Status RunOnRank(int stage, const std::string& directory, Communicator& communicator,
                 Result* result) {
  Autoencoder model;
  const std::unique_ptr<Graph> graph = MakeGraph(model, stage);
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, make_trainer(*graph, communicator));
  ZG_ASSIGN_OR_RETURN(result->reconstructed, RunEvals(*trainer, "reconstruct"));
  ZG_ASSIGN_OR_RETURN(const Values losses, RunEvals(*trainer, "loss"));
  for (const float loss : losses) result->loss += loss / static_cast<float>(losses.size());
  ZG_ASSIGN_OR_RETURN(result->sampled, RunEvals(*trainer, "sample"));
  ZG_ASSIGN_OR_RETURN(result->chosen, RunEvals(*trainer, "choose"));
  ZG_RETURN_IF_ERROR(TakeStep(*trainer));
  ZG_ASSIGN_OR_RETURN(result->trained, trainer->step_result("y"));
  ZG_RETURN_IF_ERROR(trainer->save(directory));
  ZG_ASSIGN_OR_RETURN(result->after_step, RunEvals(*trainer, "sample"));
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> other, make_trainer(*graph, communicator));
  ZG_RETURN_IF_ERROR(other->resume(directory));
  ZG_ASSIGN_OR_RETURN(result->resumed, RunEvals(*other, "sample"));
  return Status::Ok();
}

Result RunGraph(int ranks, int stage) {
  RegisterAllOps();
  const std::string directory =
      fmt::format("{}/random_eval_{}_{}", ::testing::TempDir(), ranks, stage);
  std::filesystem::remove_all(directory);
  return testing::ResultsOnRanks<Result>(ranks, [&](Communicator& communicator, Result* result) {
    return RunOnRank(stage, directory, communicator, result);
  })[0];
}

bool HasTwoEqualRuns(const Values& values) {
  const size_t size = values.size() / kRuns;
  for (int a = 0; a < kRuns; ++a) {
    for (int b = 0; b < a; ++b) {
      if (std::equal(values.begin() + a * size, values.begin() + (a + 1) * size,
                     values.begin() + b * size)) {
        return true;
      }
    }
  }
  return false;
}

Values FirstOf(const Values& values, size_t count) {
  return Values(values.begin(), values.begin() + count);
}

TEST(RandomEval, EveryRunDrawsOtherValues) {
  const Result result = RunGraph(1, 0);
  ASSERT_EQ(result.sampled.size(), size_t{kRuns * 6});
  ASSERT_EQ(result.chosen.size(), size_t{kRuns * 4});
  EXPECT_FALSE(HasTwoEqualRuns(result.reconstructed));
  EXPECT_FALSE(HasTwoEqualRuns(result.sampled));
  EXPECT_FALSE(HasTwoEqualRuns(result.chosen));
  EXPECT_NE(result.after_step, result.sampled);
  EXPECT_EQ(result.after_step, result.resumed);
}

TEST(RandomEval, TheRunsOfRanksAreThoseOfOneRank) {
  const Result expected = RunGraph(1, 0);
  for (const int stage : {0, 2, 3}) {
    SCOPED_TRACE(fmt::format("stage {}", stage));
    const Result result = RunGraph(2, stage);
    EXPECT_EQ(result.reconstructed, expected.reconstructed);
    EXPECT_EQ(result.sampled, expected.sampled);
    EXPECT_EQ(result.chosen, expected.chosen);
    EXPECT_EQ(result.after_step, expected.after_step);
    EXPECT_EQ(result.resumed, expected.resumed);
    EXPECT_FLOAT_EQ(result.loss, expected.loss);
  }
}

TEST(RandomEval, EagerDrawsTheFirstRunsValues) {
  const Result expected = RunGraph(1, 0);
  Autoencoder model;
  Values reconstructed, trained;
  {
    Eager eager;
    reconstructed = Tensor(model(eager.f32({2, 3}, Data(0)))).values();
    EXPECT_NE(Tensor(model(eager.f32({2, 3}, Data(0)))).values(), reconstructed);
  }
  {
    Eager eager;
    const Values sampled = Tensor(model.decode(normal(zeros({2, 2})))).values();
    EXPECT_EQ(sampled, FirstOf(expected.sampled, sampled.size()));
  }
  // Training draws others, those of a graph's first micro-batch.
  Eager eager;
  eager.set_training(true);
  trained = Tensor(model(eager.f32({2, 3}, Data(0)))).values();
  EXPECT_EQ(reconstructed, FirstOf(expected.reconstructed, reconstructed.size()));
  EXPECT_EQ(trained, FirstOf(expected.trained, trained.size()));
  EXPECT_NE(trained, reconstructed);
}

}  // namespace
}  // namespace zg
