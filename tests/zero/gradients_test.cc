// Gradients as values and custom gradients: gradient penalties, a straight-through estimator. The
// steps equal PyTorch's (tests/reference/make_gradients.py), eagerly and in a graph, with the same
// bits at any stage and number of ranks.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/comm/in_process.h"
#include "framework/eager/eager.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "tests/testing/as_planned.h"
#include "tests/testing/results_on_ranks.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using Json = nlohmann::json;

constexpr int64_t kBatch = 2;
constexpr int64_t kMicroBatches = 6;
constexpr int64_t kInputs = 4;
constexpr int64_t kHidden = 8;
constexpr double kTolerance = 2e-6;
const optim::Sgd kOptimizer{0.02, 0.5};

const Json& Reference() {
  static const Json reference = [] {
    std::ifstream file("tests/reference/gradients.json");
    return Json::parse(file);
  }();
  return reference;
}

Var SignWithGradient(Var x) {
  return custom_gradient(
      {x}, [](const GradientInputs& in) { return sign(in[0]); },
      [](const GradientInputs& in, Var, Var dy) -> std::vector<Var> {
        return {where(less_equal(abs(in[0]), 1.0), dy, 0.0)};
      });
}

struct Model : nn::Module {
  nn::Linear first{this, "first", kInputs, kHidden};
  nn::Linear second{this, "second", kHidden, kHidden};
  nn::Linear third{this, "third", kHidden, 1};

  // The loss of a kind in make_gradients.py.
  Var Loss(const std::string& kind, Var x, Var y) {
    if (kind == "sign") return mse_loss(third(silu(second(SignWithGradient(first(x))))), y);
    if (kind == "penalty") {
      const Var score = third(tanh(second(silu(first(x)))));
      const Var dx = gradients(sum(score), {x})[0];
      const Var slope = sqrt(sum(square(dx), {1}) + 1e-12);
      return mean(square(score - y)) + 0.5 * mean(square(slope - 1.0));
    }
    if (kind == "norms") {
      const Var gain = *second.bias + 1.0;
      const Var normed = layer_norm(linear(x, first.weight), gain, *first.bias);
      const Var h = rms_norm(linear(tanh(normed), second.weight), gain);
      const Var score = third(softmax(h) + log_softmax(h));
      const Var dx = gradients(sum(score), {x})[0];
      const Var slope = sqrt(sum(square(dx), {1}) + 1e-12);
      return 0.02 * (mean(square(score - y)) + 0.5 * mean(square(slope - 1.0)));
    }
    if (kind == "inner step") {
      const Var h = tanh(first(x));
      const auto loss_with = [&](Var weight) {
        const Var logits = linear(h, weight, *second.bias);
        const Var classes = 5.0 * arange(kBatch) + 1.0;
        return cross_entropy(logits, classes) + mse_loss(third(silu(logits)), y);
      };
      const Var dw = gradients(loss_with(second.weight), {second.weight})[0];
      return loss_with(second.weight - 0.5 * dw);
    }
    const Var score = third(gelu_erf(second(gelu(first(x)))));
    const Var error = mean(square(score - y));
    return error + 0.1 * sum(square(gradients(error, {second.weight})[0]));
  }
};

constexpr const char* kKinds[] = {"penalty", "sign", "curvature", "norms", "inner step"};

struct Config {
  std::string kind;
  int ranks = 1;
  int stage = 0;
  DType dtype = DType::kF32;
  std::string recompute = {};
};

struct Result {
  std::vector<float> losses;
  std::map<std::string, std::vector<float>> parameters;
};

std::vector<float> Part(const char* name, int64_t micro_batch, int64_t width) {
  const std::vector<float> all = Reference()[name];
  const auto begin = all.begin() + micro_batch * kBatch * width;
  return {begin, begin + kBatch * width};
}

Status TrainRank(const Config& config, Communicator& communicator, Result* result) {
  Model model;
  Graph graph("gradients");
  graph.train(kOptimizer, [&](Inputs& in) {
    const Var x = in.f32("x", {kBatch, kInputs});
    return model.Loss(config.kind, x, in.f32("y", {kBatch, 1}));
  });
  graph.config().zero.stage = config.stage;
  graph.config().zero.bucket_bytes = 128;
  graph.config().micro_batches = kMicroBatches;
  graph.config().dtype = config.dtype;
  if (!config.recompute.empty()) graph.config().recompute = {config.recompute};
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator));
  NamedValues first;
  for (const NamedParameter& parameter : graph.named_parameters()) {
    first[parameter.name] = WholeTensor(parameter.shape, Reference()["parameters"][parameter.name]);
  }
  ZG_RETURN_IF_ERROR(trainer->scatter_parameters(first));
  for (int step = 0; step < 4; ++step) {
    std::vector<std::vector<float>> x(kMicroBatches), y(kMicroBatches);
    ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
      x[micro_batch] = Part("x", micro_batch, kInputs);
      y[micro_batch] = Part("y", micro_batch, 1);
      return trainer->feed({{"x", x[micro_batch]}, {"y", y[micro_batch]}});
    }));
    result->losses.push_back(loss);
  }
  ZG_ASSIGN_OR_RETURN(const NamedValues values, trainer->consolidate_parameters());
  for (const auto& [name, tensor] : values) result->parameters[name] = tensor.values;
  testing::ExpectMemoryAsPlanned(trainer->executor());
  return Status::Ok();
}

Result Train(const Config& config) {
  return testing::ResultsOnRanks<Result>(config.ranks,
                                         [&](Communicator& communicator, Result* result) {
                                           return TrainRank(config, communicator, result);
                                         })[0];
}

void ExpectReference(const Result& result, const Json& run) {
  ASSERT_EQ(result.losses.size(), run["losses"].size());
  for (size_t i = 0; i < result.losses.size(); ++i) {
    EXPECT_NEAR(result.losses[i], run["losses"][i].get<double>(), kTolerance) << "step " << i;
  }
  for (const auto& [name, expected] : run["parameters"].items()) {
    const std::vector<float>& values = result.parameters.at(name);
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(values[i], expected[i].get<double>(), kTolerance) << name << " " << i;
    }
  }
}

TEST(Gradients, StepsAreThoseOfPyTorch) {
  for (const Json& run : Reference()["runs"]) {
    SCOPED_TRACE(run["name"].get<std::string>());
    ExpectReference(Train({run["name"]}), run);
  }
}

TEST(Gradients, HaveTheSameBitsAtEveryStageOnAnyNumberOfRanks) {
  for (const char* kind : kKinds) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      const Result expected = Train({kind, 1, 0, dtype});
      for (const int ranks : {1, 2, 3}) {
        for (int stage = 0; stage <= 3; ++stage) {
          SCOPED_TRACE(
              fmt::format("{} in {}, {} ranks, stage {}", kind, DTypeName(dtype), ranks, stage));
          const Result result = Train({kind, ranks, stage, dtype});
          EXPECT_EQ(result.losses, expected.losses);
          EXPECT_EQ(result.parameters, expected.parameters);
        }
      }
    }
  }
}

TEST(Gradients, RecomputationChangesNoBit) {
  for (const char* kind : kKinds) {
    SCOPED_TRACE(kind);
    const Result expected = Train({kind, 2, 3});
    const Result again = Train({kind, 2, 3, DType::kF32, "*"});
    EXPECT_EQ(again.losses, expected.losses);
    EXPECT_EQ(again.parameters, expected.parameters);
  }
}

// Eagerly: the same functions, on one micro-batch.
TEST(Gradients, AtOnceTheyAreThoseOfAGraph) {
  for (const char* kind : kKinds) {
    SCOPED_TRACE(kind);
    Model model;
    std::vector<float> expected;
    RegisterAllOps();
    const std::vector<float> x = Part("x", 0, kInputs), y = Part("y", 0, 1);
    const Status status = RunRanks(1, [&](Communicator& communicator) -> Status {
      Graph graph("gradients");
      graph.train(kOptimizer, [&](Inputs& in) {
        return model.Loss(kind, in.f32("x", {kBatch, kInputs}), in.f32("y", {kBatch, 1}));
      });
      TrainerOptions options;
      options.seed = 5;
      ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator, options));
      for (int step = 0; step < 2; ++step) {
        ZG_ASSIGN_OR_RETURN(const float loss, trainer->step({{"x", x}, {"y", y}}));
        expected.push_back(loss);
      }
      return Status::Ok();
    });
    ASSERT_TRUE(status.ok()) << status.message();
    EagerOptions options;
    options.seed = 5;
    options.training = true;
    Eager eager(options);
    std::vector<float> losses;
    for (int step = 0; step < 2; ++step) {
      const Tensor loss =
          model.Loss(kind, eager.f32({kBatch, kInputs}, x), eager.f32({kBatch, 1}, y));
      loss.backward();
      eager.step(optim::Sgd{0.02});
      losses.push_back(loss.item());
    }
    EXPECT_EQ(losses[0], expected[0]);
    EXPECT_EQ(losses[1], expected[1]);  // the first step with momentum is one without
  }
}

// d/dx of x^3 sigmoid(x), once and twice, against differences.
TEST(Gradients, OfGradientsAgreeWithDifferences) {
  Eager eager;
  const auto first = [&](float at) {
    const Tensor x = eager.f32({1}, {at});
    return Tensor(gradients(sum(x * square(x) * sigmoid(x)), {x})[0]).item();
  };
  for (const float at : {-1.5f, -0.25f, 0.75f, 2.0f}) {
    const Tensor x = eager.f32({1}, {at});
    const Var dx = gradients(sum(x * square(x) * sigmoid(x)), {x})[0];
    const Tensor second = gradients(sum(dx), {x})[0];
    const float h = 1.0f / 128;
    EXPECT_NEAR(second.item(), (first(at + h) - first(at - h)) / (2 * h), 2e-3) << at;
  }
}

// The slope of attention with respect to its input, in a program.
std::vector<float> SlopesOfAttention(bool packed, DType dtype) {
  return testing::ResultsOnRanks<std::vector<float>>(
      1, [&](Communicator& communicator, std::vector<float>* slopes) -> Status {
        Graph graph("attention");
        graph.eval("slopes", [&](Inputs& in) {
          const Var x = in.f32("x", {2, 3, 4});
          AttentionOptions options;
          options.heads = 2;
          const Var y = packed ? attention(concat({x, x * 0.5, x * x}, -1), 2)
                               : attention(x, x * 0.5, x * x, options);
          return gradients(sum(square(y)), {x})[0];
        });
        graph.config().dtype = dtype;
        ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator));
        std::vector<float> x(24);
        for (size_t i = 0; i < x.size(); ++i) x[i] = 0.125f * static_cast<float>(i * 7 % 24) - 1.0f;
        ZG_RETURN_IF_ERROR(trainer->eval("slopes", {{"x", x}}));
        ZG_ASSIGN_OR_RETURN(*slopes, trainer->local_result("slopes"));
        return Status::Ok();
      })[0];
}

TEST(Gradients, ThroughAttentionIn16Bits) {
  for (const bool packed : {false, true}) {
    const std::vector<float> expected = SlopesOfAttention(packed, DType::kF32);
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      const std::vector<float> slopes = SlopesOfAttention(packed, dtype);
      ASSERT_EQ(slopes.size(), expected.size());
      for (size_t i = 0; i < slopes.size(); ++i) {
        EXPECT_NEAR(slopes[i], expected[i], 0.05f + 0.02f * std::abs(expected[i])) << i;
      }
    }
  }
}

std::string ErrorOf(const std::function<Var(Inputs&)>& build) {
  Graph graph("g");
  graph.train(kOptimizer, build);
  return graph.status().message();
}

TEST(Gradients, MistakesAreErrors) {
  nn::Module root;
  nn::Linear layer(&root, "layer", 3, 3);
  EXPECT_EQ(ErrorOf([&](Inputs& in) {
              const auto same = [](const GradientInputs& inputs) { return inputs[0]; };
              return mean(custom_gradient({layer(in.f32("x", {2, 3}))}, same, nullptr));
            }),
            "graph g, train: custom_gradient: got an empty function");
  EXPECT_EQ(
      ErrorOf([&](Inputs& in) {
        const Var x = in.f32("x", {2, 3});
        return gradients(x * x, {x})[0];
      }),
      "graph g, train: gradients: got %multiply f32[2,3], expected the scalar f32[]; take the "
      "sum");
  EXPECT_EQ(ErrorOf([&](Inputs& in) {
              const Var x = in.f32("x", {2, 3}), z = in.f32("z", {2, 3});
              return gradients(sum(x), {x, z})[0];
            }),
            "graph g, train: gradients: %sum does not depend on the source %z");
  EXPECT_EQ(ErrorOf([&](Inputs& in) {
              const Var x = in.f32("x", {2, 3});
              return mean(custom_gradient(
                  {x}, [&](const GradientInputs& i) { return layer(i[0]); },
                  [](const GradientInputs&, Var, Var dy) -> std::vector<Var> { return {dy}; }));
            }),
            "graph g, train: custom_gradient: 'forward' reads %layer.bias, which would get no "
            "gradient; make it an input, or take stop_gradient(...) of it");
  EXPECT_EQ(
      ErrorOf([&](Inputs& in) {
        const Var x = in.f32("x", {2, 3});
        return mean(custom_gradient(
            {x}, [&](const GradientInputs& i) { return square(i[0]); },
            [](const GradientInputs&, Var, Var dy) -> std::vector<Var> { return {sum(dy)}; }));
      }),
      "graph g, train: custom_gradient: 'backward' returned f32[] for input 0, expected its "
      "shape, f32[2,3]");
  EXPECT_EQ(
      ErrorOf([&](Inputs& in) {
        const Var x = in.f32("x", {2, 3});
        return mean(custom_gradient(
            {x}, [&](const GradientInputs& i) { return square(i[0]); },
            [](const GradientInputs&, Var, Var) -> std::vector<Var> { return {}; }));
      }),
      "graph g, train: custom_gradient: 'backward' returned 0 gradients, expected one for each "
      "of 1 inputs");
}

// Training through the gradient of an op that has no second derivative names the op.
TEST(Gradients, OfWhatHasNoSecondDerivativeNameTheOp) {
  RegisterAllOps();
  Status status = RunRanks(1, [&](Communicator& communicator) -> Status {
    nn::Module root;
    nn::Linear layer(&root, "layer", 4, 4);
    Graph graph("g");
    graph.train(kOptimizer, [&](Inputs& in) {
      const Var x = in.f32("x", {2, 4});
      return mean(square(gradients(sum(square(exp2(layer(x)))), {x})[0]));
    });
    return make_trainer(graph, communicator).status();
  });
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("pow_exponent_slope"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("second derivatives are not supported"), std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace zg
