// Parameters that functions read as something else: normalised weights, and values of few bits. Their
// formulas, eagerly and in graphs, and the same bits at every stage.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "framework/eager/eager.h"
#include "framework/nn/nn.h"
#include "tests/testing/results_on_ranks.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kIn = 6, kOut = 4;

double NormOf(const std::vector<float>& values, size_t begin, size_t end) {
  double sum = 0.0;
  for (size_t i = begin; i < end; ++i) sum += static_cast<double>(values[i]) * values[i];
  return std::sqrt(sum);
}

TEST(WeightNorm, IsItsFormula) {
  Eager eager;
  nn::Conv1d conv(nullptr, "conv", kIn, kOut, 3);
  const std::vector<float> v = Tensor(conv.weight).values();
  nn::weight_norm(conv);
  const std::vector<float> w = Tensor(conv.weight).values();
  constexpr size_t kRow = kIn * 3;
  // The first gain is the norm of a row of this distribution on average: 1 / sqrt(3) here.
  for (size_t i = 0; i < w.size(); ++i) {
    const size_t row = i / kRow;
    const double norm = NormOf(v, row * kRow, (row + 1) * kRow);
    EXPECT_NEAR(w[i], v[i] / norm / std::sqrt(3.0), 1e-6);
    EXPECT_NEAR(norm, 1 / std::sqrt(3.0), 0.25);
  }
}

TEST(WeightNorm, OfADimThatIsNot) {
  nn::Linear layer(nullptr, "layer", kIn, kOut);
  nn::weight_norm(layer, 2);
  Graph graph("g");
  graph.eval("run", [&](Inputs& in) { return layer(in.f32("x", {1, kIn})); });
  EXPECT_THAT(graph.status().message(), HasSubstr("weight_norm: got dim 2 for a weight [4,6]"));
}

struct Model : nn::Module {
  nn::Conv1d conv{this, "conv", kIn, kOut, 3};
  nn::Linear spectral{this, "spectral", kOut, kIn};
  nn::Linear quantised{this, "quantised", kIn, 3};

  Model() {
    nn::weight_norm(conv);
    nn::spectral_norm(spectral);
    quantised.weight.reads_as([](Var p) {  // in steps of 1 / 8, with the gradient of p
      return p + stop_gradient(round(p * 8.0) / 8.0 - p);
    });
  }

  Var forward(Var x) override {
    const Var h = tanh(spectral(mean(relu(conv(x)), {2})));
    return quantised(h) + 0.1 * quantised(h * h);
  }
};

// Losses of some steps, what eval says, and all digests.
std::string RunOf(int ranks, int stage, DType dtype) {
  const auto results = testing::ResultsOnRanks<std::string>(ranks, [&](Communicator& communicator,
                                                                       std::string* text) {
    Model model;
    Graph graph("normed");
    graph.train(optim::AdamW{0.02}, [&](Inputs& in) {
      return cross_entropy(model(in.f32("x", {2, kIn, 5})), in.i64("y", {2}));
    });
    graph.eval("run", [&](Inputs& in) { return model(in.f32("x", {2, kIn, 5})); });
    graph.config().zero.stage = stage;
    graph.config().zero.shard_min_elements = 0;
    graph.config().dtype = dtype;
    graph.config().micro_batches = 6;
    ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator));
    std::vector<float> x(2 * kIn * 5);
    std::vector<int64_t> y;
    for (int64_t step = 0; step < 5; ++step) {
      ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro) {
        for (size_t i = 0; i < x.size(); ++i) {
          x[i] =
              static_cast<float>((step * 7 + micro * 5 + static_cast<int64_t>(i) * 3) % 17) / 8 - 1;
        }
        y = {micro % 3, (micro + step) % 3};
        return trainer->feed({{"x", x}, {"y", y}});
      }));
      *text += fmt::format("{} ", loss);
    }
    std::fill(x.begin(), x.end(), 0.25f);
    ZG_RETURN_IF_ERROR(trainer->eval("run", {{"x", x}}));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> y_of_rank, trainer->local_result("run"));
    ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer->digest_parameters());
    *text += fmt::format("{} {}", fmt::join(y_of_rank, " "), parameters.sha256);
    return Status::Ok();
  });
  return results[0];
}

TEST(WeightNorm, HasTheSameBitsAtEveryStage) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const std::string expected = RunOf(1, 0, dtype);
    ASSERT_FALSE(expected.empty());
    for (const int stage : {0, 1, 2, 3}) EXPECT_EQ(RunOf(3, stage, dtype), expected) << stage;
  }
}

// With parameters that stay, the power method finds the largest singular value.
TEST(SpectralNorm, MakesTheLargestSingularValueOne) {
  struct Layer : nn::Module {
    nn::Linear linear{this, "linear", kIn, kOut};
    Layer() { nn::spectral_norm(linear); }
  } layer;
  Graph graph("spectral");
  graph.train(optim::Sgd{0.0}, [&](Inputs& in) {
    return mean(layer.linear(in.f32("x", {1, kIn})));
  });
  graph.eval("weight", [&](Inputs&) { return Var(layer.linear.weight); });
  const auto weights = testing::ResultsOnRanks<std::vector<float>>(
      1, [&](Communicator& communicator, std::vector<float>* result) -> Status {
        ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator));
        const std::vector<float> x(kIn, 1.0f);
        for (int step = 0; step < 200; ++step) {
          ZG_RETURN_IF_ERROR(trainer->step({{"x", x}}).status());
        }
        ZG_RETURN_IF_ERROR(trainer->eval("weight", {}));
        ZG_ASSIGN_OR_RETURN(*result, trainer->result("weight"));
        return Status::Ok();
      });
  // W^T W v, again and again.
  const std::vector<float>& w = weights[0];
  ASSERT_EQ(w.size(), static_cast<size_t>(kOut * kIn));
  std::vector<double> v(kIn, 1.0);
  double square = 0.0;
  for (int i = 0; i < 1000; ++i) {
    std::vector<double> u(kOut), next(kIn);
    for (int64_t r = 0; r < kOut; ++r) {
      for (int64_t c = 0; c < kIn; ++c) u[r] += w[r * kIn + c] * v[c];
    }
    square = 0.0;
    for (int64_t c = 0; c < kIn; ++c) {
      for (int64_t r = 0; r < kOut; ++r) next[c] += w[r * kIn + c] * u[r];
      square += next[c] * next[c];
    }
    for (int64_t c = 0; c < kIn; ++c) v[c] = next[c] / std::sqrt(square);
  }
  EXPECT_NEAR(std::sqrt(square), 1.0, 1e-5);  // of W^T W
}

TEST(ReadsAs, IsCalledOnceInAFunction) {
  Eager eager;
  Model model;
  EXPECT_EQ(Tensor(model.quantised.weight).values()[0] * 8,
            std::round(Tensor(model.quantised.weight).values()[0] * 8));
  int calls = 0;
  nn::Linear layer(nullptr, "layer", 2, 2);
  layer.weight.reads_as([&](Var p) {
    ++calls;
    return p * 2.0 + 0.0 * Var(layer.weight);  // inside, it reads as itself
  });
  Graph graph("once");
  graph.eval("run", [&](Inputs& in) { return layer(layer(in.f32("x", {1, 2}))); });
  EXPECT_TRUE(graph.status().ok()) << graph.status().message();
  EXPECT_EQ(calls, 1);
}

TEST(ReadsAs, Errors) {
  nn::Linear layer(nullptr, "layer", 2, 2);
  const auto error = [&] {
    Graph graph("g");
    graph.eval("run", [&](Inputs& in) { return layer(in.f32("x", {1, 2})); });
    return graph.status().message();
  };
  layer.weight.reads_as([](Var p) { return sum(p); });
  EXPECT_EQ(error(),
            "graph g, eval 'run': layer: reads_as: got f32[] for 'layer.weight', expected "
            "f32[2,2]");
  layer.weight.reads_as([](Var) { return Var(); });
  EXPECT_THAT(error(), HasSubstr("reads_as: the Var is empty"));
}

}  // namespace
}  // namespace zg
