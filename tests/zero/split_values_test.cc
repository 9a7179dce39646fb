// Values that lie as parts along an axis whose ranks share micro-batches: results are handed out whole,
// buffers take what follows from them, and functions of them have gradients; each as on one rank.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/nn/nn.h"
#include "tests/testing/results_on_ranks.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using Values = std::vector<float>;
using Mesh1 = std::vector<MeshAxis>;

constexpr int64_t kBatch = 6;
constexpr int kMicroBatches = 4;

struct Features : nn::Module {
  nn::Linear up{this, "up", 5, 8};
  nn::Linear down{this, "down", 8, 6};
  nn::BatchNorm1d norm{this, "norm", 8};
  nn::Buffer seen{this, "seen", {8}, Initializer::Zeros()};
};

using Build = std::function<Outputs(Features& model, Var x)>;

struct Result {
  std::map<std::string, Values> of_step, of_model;
};

struct Config {
  Mesh1 mesh = {};
  int stage = 0;
};

Result Run(const Config& config, const Build& build) {
  const int ranks = Mesh(config.mesh).num_ranks();
  return testing::ResultsOnRanks<Result>(
      ranks, [&](Communicator& communicator, Result* result) -> Status {
        Features model;
        Graph graph("features");
        graph.train(optim::Sgd{0.1}, [&](Inputs& in) {
          return build(model, in.f32("x", {kBatch, 5}));
        });
        graph.config().mesh = config.mesh;
        graph.config().micro_batches = kMicroBatches;
        graph.config().zero.stage = config.stage;
        if (Mesh(config.mesh).FindAxis("tensor") >= 0) {
          graph.config().place("up", "tensor", Sbp::S(0));
          graph.config().place("down.weight", "tensor", Sbp::S(1));
        }
        ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator, {}));
        Values x(kBatch * 5);
        const auto feed = [&](int64_t micro_batch) {
          for (size_t i = 0; i < x.size(); ++i) {
            x[i] = static_cast<float>((7 * i + 5 * micro_batch) % 13) / 6.0f - 1.0f;
          }
          return trainer->feed({{"x", x}});
        };
        ZG_RETURN_IF_ERROR(trainer->step(feed).status());
        for (const char* name : {"loss", "turned", "row", "weight"}) {
          if (!trainer->executor().HasOutput(name)) continue;
          ZG_ASSIGN_OR_RETURN(result->of_step[name], trainer->step_result(name));
        }
        ZG_ASSIGN_OR_RETURN(const NamedValues parameters, trainer->consolidate_parameters());
        for (const auto& [name, tensor] : parameters) result->of_model[name] = tensor.values;
        return Status::Ok();
      })[0];
}

void ExpectClose(const std::map<std::string, Values>& expected,
                 const std::map<std::string, Values>& got) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, values] : expected) {
    SCOPED_TRACE(name);
    const Values& other = got.at(name);
    ASSERT_EQ(other.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(other[i], values[i], 2e-5f * (1.0f + std::abs(values[i]))) << i;
    }
  }
}

void ExpectAsOnOneRank(const Build& build) {
  const Result expected = Run({{{"data", 1}}}, build);
  for (const Config& config :
       {Config{{{"data", 1}, {"tensor", 2}}}, Config{{{"data", 2}, {"tensor", 2}}, 3},
        Config{{{"replica", 2}, {"tensor", 2}}, 2}}) {
    SCOPED_TRACE(fmt::format("{}, stage {}", Mesh(config.mesh).ToString(), config.stage));
    const Result got = Run(config, build);
    ExpectClose(expected.of_step, got.of_step);
    ExpectClose(expected.of_model, got.of_model);
  }
}

TEST(SplitValues, ResultsAreHandedOutWhole) {
  ExpectAsOnOneRank([](Features& model, Var x) {
    const Var y = model.up(x);
    return Outputs{{"loss", mean(square(model.down(relu(y))))},
                   {"turned", transpose(y, 0, 1)},
                   {"row", mean(y, {0})},
                   {"weight", model.up.weight}};
  });
}

TEST(SplitValues, BuffersTakeWhatFollowsFromThem) {
  ExpectAsOnOneRank([](Features& model, Var x) {
    const Var y = model.up(x);
    if (nn::is_training()) model.seen.update(mean(abs(y), {0}));
    return Outputs{{"loss", mean(square(model.down(model.norm(y) + model.seen)))}};
  });
}

TEST(SplitValues, FunctionsOfThemHaveGradients) {
  ExpectAsOnOneRank([](Features& model, Var x) {
    const Var y = model.up(x);
    const Var z = normalize(y) + norm(y, 1, true) + logsumexp(y, 1, true) - max(y, 1, true);
    return Outputs{{"loss", mean(square(model.down(z)))}};
  });
}

// Projections to q, k and v side by side, each in parts, beside data ranks and other readers of parts.
TEST(SplitValues, GroupsAreMovedWhereTheyMustBe) {
  struct Attention : nn::Module {
    nn::Linear qkv{this, "qkv", 8, 24};
    nn::Linear out{this, "out", 8, 8};
  };
  const auto train = [](const Mesh1& mesh) {
    return testing::ResultsOnRanks<Values>(
        Mesh(mesh).num_ranks(), [&](Communicator& communicator, Values* losses) -> Status {
          Attention model;
          Graph graph("packed");
          graph.train(optim::Sgd{0.5}, [&](Inputs& in) {
            const Var qkv = model.qkv(in.f32("x", {4, 6, 8})) * 0.5 + 0.1;
            const std::vector<Var> parts = chunk(qkv, 3, -1);
            return mean(square(model.out(attention(qkv, 2, true)))) + mean(parts[0] * parts[1]);
          });
          graph.config().mesh = mesh;
          graph.config().micro_batches = 2;
          if (Mesh(mesh).FindAxis("tensor") >= 0) {
            graph.config().place("qkv", "tensor", Sbp::S(0, 3));
            graph.config().place("out.weight", "tensor", Sbp::S(1));
          }
          ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator, {}));
          Values x(4 * 6 * 8);
          while (trainer->steps_done() < 3) {
            ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
              for (size_t i = 0; i < x.size(); ++i) {
                x[i] = static_cast<float>((11 * i + 3 * micro_batch) % 17) / 8.0f - 1.0f;
              }
              return trainer->feed({{"x", x}});
            }));
            losses->push_back(loss);
          }
          return Status::Ok();
        })[0];
  };
  const Values expected = train({{"data", 1}});
  for (const Mesh1& mesh : {Mesh1{{"data", 1}, {"tensor", 2}}, Mesh1{{"data", 2}, {"tensor", 2}}}) {
    SCOPED_TRACE(Mesh(mesh).ToString());
    const Values losses = train(mesh);
    ASSERT_EQ(losses.size(), expected.size());
    for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], 1e-6f) << i;
  }
}

}  // namespace
}  // namespace zg
