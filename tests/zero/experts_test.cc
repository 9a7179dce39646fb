// Experts on a mesh axis: ranks along it hold some of the matrices of grouped_matmul, and a result is
// that of the rank that has its matrix. Adding nothing changes no bit.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/nn/nn.h"
#include "tests/testing/results_on_ranks.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

constexpr int64_t kTokens = 12;
constexpr int64_t kWidth = 8;
constexpr int64_t kExperts = 4;

struct Experts : nn::Module {
  nn::Linear router{this, "router", kWidth, kExperts, {.has_bias = false}};
  nn::Parameter up{this, "up", {kExperts, 2 * kWidth, kWidth}, Initializer::Normal(0.3)};
  nn::Parameter down{this, "down", {kExperts, kWidth, 2 * kWidth}, Initializer::Normal(0.3)};

  // (N, width)
  Var forward(Var x) override {
    const TopK best = top_k(softmax(router(x)), 2);
    const Var hidden = grouped_matmul(unsqueeze(x, 1), up, best.indices, /*transposed=*/true);
    const Var y = grouped_matmul(silu(hidden), down, best.indices, /*transposed=*/true);
    return x + sum(y * unsqueeze(best.values, -1), {1});
  }
};

struct Result {
  std::vector<float> losses;
  std::string parameters;
};

// Along the axis `tensor`.
struct Placements {
  Sbp up = Sbp::B();
  Sbp down = Sbp::B();
};

Result Train(const std::vector<MeshAxis>& mesh, int stage, DType dtype,
             const Placements& placements) {
  const int num_ranks = Mesh(mesh).num_ranks();
  return testing::ResultsOnRanks<Result>(
      num_ranks, [&](Communicator& communicator, Result* result) -> Status {
        Experts model;
        Graph graph("experts");
        graph.train(optim::AdamW{.lr = 0.02}, [&](Inputs& in) {
          return mse_loss(model(in.f32("x", {kTokens, kWidth})), in.f32("y", {kTokens, kWidth}));
        });
        graph.config().mesh = mesh;
        graph.config().micro_batches = 2;
        graph.config().zero.stage = stage;
        graph.config().dtype = dtype;
        if (placements.up != Sbp::B()) {
          graph.config().place("up", "tensor", placements.up);
          graph.config().place("down", "tensor", placements.down);
        }
        ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator, {}));
        std::vector<float> x(kTokens * kWidth), y(kTokens * kWidth);
        const std::vector<NamedData> batch = {{"x", x}, {"y", y}};
        for (int64_t step = 0; step < 3; ++step) {
          ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
            for (size_t i = 0; i < x.size(); ++i) {
              x[i] = static_cast<float>((7 * i + 5 * micro_batch + step) % 13) / 6.0f - 1.0f;
              y[i] = static_cast<float>((3 * i + micro_batch) % 11) / 5.0f - 1.0f;
            }
            return trainer->feed(batch);
          }));
          result->losses.push_back(loss);
        }
        ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer->digest_parameters());
        result->parameters = parameters.sha256;
        return Status::Ok();
      })[0];
}

TEST(Experts, HaveTheSameBitsWhereverTheyAre) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Result expected = Train({{"data", 1}}, 0, dtype, {});
    for (const std::vector<MeshAxis>& mesh : std::vector<std::vector<MeshAxis>>{
             {{"tensor", 2}}, {{"tensor", 4}}, {{"data", 2}, {"tensor", 2}}}) {
      for (int stage = 0; stage <= 3; ++stage) {
        SCOPED_TRACE(
            fmt::format("{}, {}, stage {}", DTypeName(dtype), Mesh(mesh).ToString(), stage));
        const Result got = Train(mesh, stage, dtype, {Sbp::S(0), Sbp::S(0)});
        EXPECT_EQ(got.losses, expected.losses);
        EXPECT_EQ(got.parameters, expected.parameters);
      }
    }
  }
}

// The hidden columns of every expert: its sums over them are taken in parts.
TEST(Experts, CanBeCutThemselves) {
  const Result one = Train({{"data", 1}}, 0, DType::kF32, {});
  const Result columns = Train({{"tensor", 2}}, 0, DType::kF32, {Sbp::S(1), Sbp::S(2)});
  for (size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_NEAR(columns.losses[i], one.losses[i], 1e-5);
  }
}

TEST(Experts, AnIdWithoutMatrixEndsTheStep) {
  testing::ResultsOnRanks<int>(1, [](Communicator& communicator, int*) -> Status {
    Experts model;
    Graph graph("ids");
    graph.train(optim::Sgd{.lr = 0.1}, [&](Inputs& in) {
      const Var x = in.f32("x", {2, kWidth});
      return mean(grouped_matmul(x, model.up, in.i64("ids", {2}), /*transposed=*/true));
    });
    ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator, {}));
    const std::vector<float> x(2 * kWidth);
    for (const int64_t id : {int64_t{-1}, kExperts}) {
      const Status status =
          trainer->step({{"x", x}, {"ids", std::vector<int64_t>{0, id}}}).status();
      EXPECT_THAT(status.message(), ::testing::HasSubstr(fmt::format(
                                        "grouped_matmul: the id of row 1 is {}, there are "
                                        "matrices 0 to 3",
                                        id)));
    }
    return Status::Ok();
  });
}

}  // namespace
}  // namespace zg
