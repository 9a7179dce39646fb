// A model of many small functions, with values that belong to one micro-batch: a loss that is not
// linear in means, a penalty on parameters, results without the batch's dim. Every rank computes
// its micro-batches alone, so results are the same at any stage and on any number of ranks.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/nn/nn.h"
#include "tests/testing/results_on_ranks.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

constexpr int64_t kBatch = 2;
constexpr int64_t kTime = 3;
constexpr int64_t kWidth = 8;
constexpr int kMicroBatches = 6;  // of 1, 2 and 3 ranks

struct Model : nn::Module {
  // (B, T, C) -> (B, 1 + T, C): a token in front, attention of two heads, norms, gates.
  Var forward(Var x) override {
    const Var tokens = expand(token, {kBatch, 1, kWidth});
    Var h = concat({tokens, x + position}, 1);
    const Var heads = permute(reshape(h, {kBatch, 1 + kTime, 2, kWidth / 2}), {0, 2, 1, 3});
    const Var share = exp(heads - mean(heads, {-1}, true));
    const Var gated = heads * (share / sum(share, {-1}, true));
    const Var weighed = matmul(softmax(einsum("bhqd,bhkd->bhqk", heads, gated)), gated);
    h = h + reshape(transpose(weighed, 1, 2), {kBatch, 1 + kTime, kWidth});
    h = (h - mean(h, {-1}, true)) * rsqrt(variance(h, {-1}, 0.0, true) + 1e-5);
    const std::vector<Var> halves = chunk(hidden(h), 2, -1);
    return silu(halves[0]) * tanh(halves[1]) + roll(h, 1, 1) * sigmoid(h);
  }

  nn::Parameter token{this, "token", {1, 1, kWidth}, Initializer::Normal(0.5)};
  nn::Parameter position{this, "position", {kTime, kWidth}, Initializer::Normal(0.5)};
  nn::Linear hidden{this, "hidden", kWidth, 2 * kWidth};
};

// Not linear in a micro-batch's values, and on a vector that has no batch dim.
Var LossOf(Model& model, Var y, Var target) {
  const Var distance = mean(square(select(y, 1, 0) - target), {0});  // [C]
  const Var loss = log(1.0 + sum(distance)) + norm(distance) * 0.1;
  return loss + mean(square(model.position)) * 0.05;
}

struct Result {
  std::vector<float> losses;
  std::string parameters;
  std::map<std::string, std::vector<float>> predictions;
};

struct Config {
  int ranks = 1;
  int stage = 0;
  DType dtype = DType::kF32;
};

std::vector<float> Numbers(int64_t count, int64_t seed) {
  std::vector<float> numbers(count);
  for (int64_t i = 0; i < count; ++i) {
    numbers[i] = static_cast<float>((seed * 37 + i * 11) % 17) / 8.0f - 1.0f;
  }
  return numbers;
}

Status TrainOnRank(const Config& config, Communicator& communicator, Result* result) {
  Model model;
  Graph graph("language");
  graph.train(optim::AdamW{.lr = 0.02}, [&](Inputs& in) {
    const Var y = model(in.f32("x", {kBatch, kTime, kWidth}));
    return LossOf(model, y, in.f32("target", {kBatch, kWidth}));
  });
  graph.eval("predict", [&](Inputs& in) -> Outputs {
    const Var y = model(in.f32("x", {kBatch, kTime, kWidth}));
    return {{"y", y}, {"means", mean(y, {0, 1})}, {"loss", mean(exp(y))}};
  });
  graph.config().zero.stage = config.stage;
  graph.config().zero.bucket_bytes = 128;
  graph.config().micro_batches = kMicroBatches;
  graph.config().dtype = config.dtype;
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator));
  std::vector<float> x, target;
  while (trainer->steps_done() < 3) {
    ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
      const int64_t seed = trainer->steps_done() * kMicroBatches + micro_batch;
      x = Numbers(kBatch * kTime * kWidth, seed);
      target = Numbers(kBatch * kWidth, seed + 100);
      return trainer->feed({{"x", x}, {"target", target}});
    }));
    result->losses.push_back(loss);
  }
  ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer->digest_parameters());
  result->parameters = parameters.sha256;
  // A micro-batch on every rank.
  x = Numbers(kBatch * kTime * kWidth, communicator.rank());
  ZG_RETURN_IF_ERROR(trainer->eval("predict", {{"x", x}}));
  for (const char* name : {"y", "means", "loss"}) {
    ZG_ASSIGN_OR_RETURN(result->predictions[name], trainer->result("predict", name));
  }
  return Status::Ok();
}

Result Train(const Config& config) {
  return testing::ResultsOnRanks<Result>(config.ranks,
                                         [&](Communicator& communicator, Result* result) {
                                           return TrainOnRank(config, communicator, result);
                                         })[0];
}

TEST(TensorLanguage, HasTheSameBitsAtEveryStageOnAnyNumberOfRanks) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Result expected = Train({1, 0, dtype});
    ASSERT_EQ(expected.losses.size(), 3u);
    EXPECT_LT(expected.losses[2], expected.losses[0]);
    for (int ranks = 1; ranks <= 3; ++ranks) {
      for (int stage = 0; stage <= 3; ++stage) {
        SCOPED_TRACE(fmt::format("{}, {} ranks, stage {}", DTypeName(dtype), ranks, stage));
        const Result result = Train({ranks, stage, dtype});
        EXPECT_EQ(result.losses, expected.losses);
        EXPECT_EQ(result.parameters, expected.parameters);
      }
    }
  }
}

// Results of the ranks' micro-batches are side by side; a scalar is averaged.
TEST(TensorLanguage, ResultsOfMicroBatchesAreSideBySide) {
  const Result one = Train({1, 0});
  const Result three = Train({3, 2});
  const std::map<std::string, int64_t> sizes = {{"y", kBatch * (1 + kTime) * kWidth},
                                                {"means", kWidth}};
  for (const auto& [name, size] : sizes) {
    SCOPED_TRACE(name);
    const std::vector<float>& all = three.predictions.at(name);
    ASSERT_EQ(all.size(), 3 * size);
    const std::vector<float> first(all.begin(), all.begin() + size);
    EXPECT_EQ(first, one.predictions.at(name));
    EXPECT_NE(std::vector<float>(all.begin() + size, all.begin() + 2 * size), first);
  }
  EXPECT_EQ(three.predictions.at("loss").size(), 1u);
}

}  // namespace
}  // namespace zg
