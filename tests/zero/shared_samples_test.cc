// Ranks that share the samples of a micro-batch by zg::place, so that a loss over all pairs of them is
// exact: it is that of one rank but for rounding, with the same bits at every stage and on any number of
// data ranks.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/nn/nn.h"
#include "tests/testing/results_on_ranks.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

constexpr int64_t kBatch = 6;
constexpr int64_t kWidth = 5;
constexpr int kMicroBatches = 4;

// A pair of encoders, whose embeddings of a sample are to be closer than those of different samples.
struct Encoders : nn::Module {
  Var Embedded(nn::Linear& first, nn::Linear& second, Var x) {
    return normalize(second(gelu(norm(first(place(x, "tensor", Sbp::S(0)))))));
  }
  Var Loss(Var x, Var y) {
    const auto whole = [](Var embedded) { return place(embedded, "tensor", Sbp::B()); };
    const Var a = whole(Embedded(left, left_out, x)), b = whole(Embedded(right, right_out, y));
    const Var pairs = matmul(a, transpose(b, 0, 1)) * exp(scale);
    return cross_entropy(pairs, arange(kBatch)) +
           cross_entropy(transpose(pairs, 0, 1), arange(kBatch));
  }
  nn::Linear left{this, "left", kWidth, 8}, left_out{this, "left_out", 8, 4};
  nn::Linear right{this, "right", kWidth, 8}, right_out{this, "right_out", 8, 4};
  nn::LayerNorm norm{this, "norm", 8};
  nn::Parameter scale{this, "scale", {1}, Initializer::Constant(1.0)};
};

struct Result {
  std::vector<float> losses;
  std::string parameters;
};

Result Train(const std::vector<MeshAxis>& mesh, int stage) {
  return testing::ResultsOnRanks<Result>(
      Mesh(mesh).num_ranks(), [&](Communicator& communicator, Result* result) -> Status {
        Encoders model;
        Graph graph("pairs");
        graph.train(optim::AdamW{.lr = 0.02}, [&](Inputs& in) {
          return model.Loss(in.f32("x", {kBatch, kWidth}), in.f32("y", {kBatch, kWidth}));
        });
        graph.config().mesh = mesh;
        graph.config().micro_batches = kMicroBatches;
        graph.config().zero.stage = stage;
        ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator, {}));
        std::vector<float> x(kBatch * kWidth), y(kBatch * kWidth);
        for (int64_t step = 0; step < 4; ++step) {
          ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
            for (size_t i = 0; i < x.size(); ++i) {
              x[i] = static_cast<float>((7 * i + 5 * micro_batch + step) % 13) / 6.0f - 1.0f;
              y[i] = x[i] * x[i] - 0.5f;
            }
            return trainer->feed({{"x", x}, {"y", y}});
          }));
          result->losses.push_back(loss);
        }
        ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer->digest_parameters());
        result->parameters = parameters.sha256;
        return Status::Ok();
      })[0];
}

TEST(SharedSamples, TheLossIsThatOfAllPairs) {
  const Result alone = Train({{"data", 1}}, 0);
  for (const int parts : {2, 3}) {
    const Result expected = Train({{"tensor", parts}}, 0);
    for (size_t i = 0; i < alone.losses.size(); ++i) {
      EXPECT_NEAR(expected.losses[i], alone.losses[i], 1e-5) << "step " << i;
    }
    for (int stage = 0; stage <= 3; ++stage) {
      for (const int data : {1, 2}) {
        SCOPED_TRACE(fmt::format("{} data ranks of {} parts, stage {}", data, parts, stage));
        const Result got = Train({{"data", data}, {"tensor", parts}}, stage);
        EXPECT_EQ(got.losses, expected.losses);
        EXPECT_EQ(got.parameters, expected.parameters);
      }
    }
  }
}

}  // namespace
}  // namespace zg
