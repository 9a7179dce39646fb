// The loss of a step as a weighted mean: over the real samples of a data set whose last steps are
// partly filled, where some ranks have none. The steps equal PyTorch's
// (tests/reference/make_weighted_loss.py), with the same bits at any stage and number of ranks.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/comm/in_process.h"
#include "framework/data/sample_order.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "tests/testing/as_planned.h"
#include "tests/testing/results_on_ranks.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using Json = nlohmann::json;

constexpr int64_t kBatch = 4;
constexpr double kTolerance = 1e-6;

struct Config {
  int64_t micro_batches = 4;
  bool has_weights = false;  // otherwise all real samples count equally
  int ranks = 1;
  int stage = 0;
  DType dtype = DType::kF32;
  double max_grad_norm = 0;
  OnNonFinite on_non_finite = OnNonFinite::kStop;
  optim::Optimizer optimizer = optim::Sgd{.lr = 0.1, .momentum = 0.9};
  int steps = 6;
};

struct Result {
  std::vector<float> losses;
  std::vector<float> norms;
  std::vector<float> weights;  // the results loss_weight
  NamedValues parameters;
  double accuracy = 0;  // over the whole data set
};

const Json& Reference() {
  static const Json reference = [] {
    std::ifstream file("tests/reference/weighted_loss.json");
    return Json::parse(file);
  }();
  return reference;
}

struct Model : nn::Module {
  Var forward(Var x) override { return output(tanh(hidden(x))); }
  nn::Linear hidden{this, "hidden", Reference()["inputs"], Reference()["hidden"]};
  nn::Linear output{this, "output", Reference()["hidden"], Reference()["classes"]};
};

struct Batch {
  std::vector<float> x, weights;
  std::vector<int64_t> y;
};

Batch BatchOf(const MicroBatch& from, bool has_weights) {
  const Json& reference = Reference();
  const int64_t inputs = reference["inputs"];
  Batch batch = {std::vector<float>(kBatch * inputs), from.weights(kBatch),
                 std::vector<int64_t>(kBatch)};
  for (int64_t row = 0; row < from.num_real(); ++row) {
    const auto sample = static_cast<int64_t>(from.samples[row]);
    for (int64_t i = 0; i < inputs; ++i) {
      batch.x[row * inputs + i] = reference["x"][sample * inputs + i];
    }
    batch.y[row] = reference["y"][sample];
    if (has_weights) batch.weights[row] = reference["weights"][sample];
  }
  return batch;
}

StatusOr<SampleOrder> OrderOf(int64_t micro_batches) {
  SampleOrderOptions options;
  options.num_samples = Reference()["samples"];
  options.batch = kBatch;
  options.micro_batches = micro_batches;
  options.shuffles = false;
  return SampleOrder::create(options);
}

// The accuracy from eval programs over a data set whose size is not a multiple of theirs.
StatusOr<double> Accuracy(Trainer& trainer, const Communicator& communicator) {
  ZG_ASSIGN_OR_RETURN(const SampleOrder order, OrderOf(communicator.size()));
  double right = 0, count = 0;
  for (int64_t step = 0; step < order.steps_per_epoch(); ++step) {
    const Batch batch = BatchOf(order.at(step, communicator.rank()), false);
    ZG_RETURN_IF_ERROR(
        trainer.eval("test", {{"x", batch.x}, {"y", batch.y}, {"weights", batch.weights}}));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> of_step, trainer.local_result("test", "right"));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> all, trainer.local_result("test", "count"));
    right += of_step[0];
    count += all[0];
  }
  return right / count;
}

Status TrainRank(const Config& config, Communicator& communicator, Result* result) {
  const Json& reference = Reference();
  Model model;
  const Shape shape = {kBatch, reference["inputs"]};
  Graph graph("weighted");
  graph.train(config.optimizer, [&](Inputs& in) {
    const Var logits = model(in.f32("x", shape));
    const Var rows = cross_entropy(logits, in.i64("y", {kBatch}), {.reduction = Reduction::kNone});
    return weighted_mean(rows, in.f32("weights", {kBatch}));
  });
  graph.eval("test", [&](Inputs& in) -> Outputs {
    const Var is_right = equal(argmax(model(in.f32("x", shape)), -1), in.i64("y", {kBatch}));
    const Var weights = in.f32("weights", {kBatch});
    return {{"right", sum(where(is_right, weights, 0.0))}, {"count", sum(weights)}};
  });
  CompileOptions& options = graph.config();
  options.zero.stage = config.stage;
  options.zero.bucket_bytes = 128;
  options.micro_batches = config.micro_batches;
  options.dtype = config.dtype;
  options.max_grad_norm = config.max_grad_norm;
  options.on_non_finite = config.on_non_finite;
  ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator));
  NamedValues first;
  for (const NamedParameter& parameter : graph.named_parameters()) {
    first[parameter.name] = WholeTensor(parameter.shape, reference["parameters"][parameter.name]);
  }
  ZG_RETURN_IF_ERROR(trainer->scatter_parameters(first));
  ZG_ASSIGN_OR_RETURN(const SampleOrder order, OrderOf(config.micro_batches));
  for (int step = 0; step < config.steps; ++step) {
    std::vector<Batch> batches(config.micro_batches);
    ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
      Batch& batch = batches[micro_batch];
      batch = BatchOf(order.at(step, micro_batch), config.has_weights);
      return trainer->feed({{"x", batch.x}, {"y", batch.y}, {"weights", batch.weights}});
    }));
    result->losses.push_back(loss);
    if (trainer->grad_norm().has_value()) result->norms.push_back(*trainer->grad_norm());
    ZG_ASSIGN_OR_RETURN(const std::vector<float> weight, trainer->local_step_result("loss_weight"));
    result->weights.push_back(weight[0]);
  }
  ZG_ASSIGN_OR_RETURN(result->parameters, trainer->consolidate_parameters());
  ZG_ASSIGN_OR_RETURN(result->accuracy, Accuracy(*trainer, communicator));
  testing::ExpectMemoryAsPlanned(trainer->executor());
  return Status::Ok();
}

Result Train(const Config& config) {
  return testing::ResultsOnRanks<Result>(config.ranks,
                                         [&](Communicator& communicator, Result* result) {
                                           return TrainRank(config, communicator, result);
                                         })[0];
}

void ExpectSame(const Result& a, const Result& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.norms, b.norms);
  EXPECT_EQ(a.weights, b.weights);
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  for (const auto& [name, values] : a.parameters) {
    EXPECT_EQ(values.values, b.parameters.at(name).values) << name;
  }
}

void ExpectSameOnAnyRanks(Config config) {
  const Result expected = Train(config);
  ASSERT_EQ(expected.losses.size(), static_cast<size_t>(config.steps));
  for (const float loss : expected.losses) EXPECT_TRUE(std::isfinite(loss));
  for (int ranks = 1; ranks <= 4; ++ranks) {
    if (config.micro_batches % ranks != 0) continue;
    for (int stage = 0; stage <= 3; ++stage) {
      SCOPED_TRACE(fmt::format("{} ranks, stage {}", ranks, stage));
      config.ranks = ranks;
      config.stage = stage;
      ExpectSame(Train(config), expected);
    }
  }
}

TEST(WeightedLoss, IsThatOfPyTorchOverTheRealSamples) {
  for (const Json& run : Reference()["runs"]) {
    for (const auto& [ranks, stage] : {std::pair(1, 0), std::pair(2, 3), std::pair(4, 2)}) {
      SCOPED_TRACE(fmt::format("steps of {}, weights {}, {} ranks, stage {}",
                               run["step_samples"].get<int>(), run["has_weights"].get<bool>(),
                               ranks, stage));
      Config config;
      config.micro_batches = run["step_samples"].get<int64_t>() / kBatch;
      config.has_weights = run["has_weights"];
      config.ranks = ranks;
      config.stage = stage;
      const Result result = Train(config);
      ASSERT_EQ(result.losses.size(), run["losses"].size());
      for (size_t i = 0; i < result.losses.size(); ++i) {
        EXPECT_NEAR(result.losses[i], run["losses"][i].get<double>(), kTolerance) << i;
      }
      for (const auto& [name, expected] : run["parameters"].items()) {
        const std::vector<float>& values = result.parameters.at(name).values;
        for (size_t i = 0; i < values.size(); ++i) {
          EXPECT_NEAR(values[i], expected[i].get<double>(), kTolerance) << name << " " << i;
        }
      }
    }
  }
}

// The steps have 16 and 6 samples of four micro-batches, or 22 of twelve: some are empty.
TEST(WeightedLoss, HasTheSameBitsAtEveryStageOnAnyNumberOfRanks) {
  for (const int64_t micro_batches : {4, 12}) {
    for (const bool has_weights : {false, true}) {
      SCOPED_TRACE(fmt::format("{} micro-batches, weights {}", micro_batches, has_weights));
      Config config;
      config.micro_batches = micro_batches;
      config.has_weights = has_weights;
      ExpectSameOnAnyRanks(config);
    }
  }
}

TEST(WeightedLoss, HasTheSameBitsWithLimitsAndInMixedPrecision) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const auto on_non_finite : {OnNonFinite::kStop, OnNonFinite::kSkip}) {
      if (dtype == DType::kF16 && on_non_finite == OnNonFinite::kSkip) continue;
      SCOPED_TRACE(fmt::format("{}, {}", DTypeName(dtype), EnumName(on_non_finite)));
      Config config;
      config.dtype = dtype;
      config.on_non_finite = on_non_finite;
      config.max_grad_norm = 0.5;
      config.steps = 3;
      ExpectSameOnAnyRanks(config);
    }
  }
}

// An optimizer that is a rule reads the weight, too; and the norm is that of the weighted mean.
TEST(WeightedLoss, DividesTheGradientsOfEveryOptimizer) {
  Config config;
  config.optimizer = optim::rule_of(optim::Sgd{.lr = 0.1, .momentum = 0.9});
  const Result by_rule = Train(config);
  config.optimizer = optim::Sgd{.lr = 0.1, .momentum = 0.9};
  const Result plain = Train(config);
  config.max_grad_norm = 1e6;
  const Result with_norm = Train(config);
  EXPECT_EQ(plain.losses, with_norm.losses);
  for (size_t i = 0; i < plain.losses.size(); ++i) {
    EXPECT_NEAR(by_rule.losses[i], plain.losses[i], kTolerance);
  }
  EXPECT_TRUE(plain.norms.empty());
  // Steps of 4, 4, 4 and 4 real samples, and of 4, 2, 0 and 0.
  EXPECT_EQ(plain.weights, (std::vector<float>{1, 0.375, 1, 0.375, 1, 0.375}));
  ASSERT_EQ(with_norm.norms.size(), 6u);
  EXPECT_GT(with_norm.norms[1], 0.1f);
}

TEST(WeightedLoss, EvalProgramsCountRealSamplesOnly) {
  Config config;
  const Result one = Train(config);
  for (const int ranks : {2, 4}) {
    config.ranks = ranks;
    EXPECT_NEAR(Train(config).accuracy, one.accuracy, 1e-12);
  }
  EXPECT_NEAR(one.accuracy * 22, std::round(one.accuracy * 22), 1e-6);
}

TEST(WeightedLoss, StepsWithoutAnyWeightAreErrors) {
  RegisterAllOps();
  const Status status = RunRanks(2, [&](Communicator& communicator) -> Status {
    Graph graph("weighted");
    nn::Module root;
    nn::Linear layer(&root, "layer", 2, 1);
    graph.train(optim::Sgd{0.1}, [&](Inputs& in) {
      const Var x = in.f32("x", {2, 2});
      return weighted_mean(mse_loss(layer(x), layer(x) * 0.0, Reduction::kNone),
                           in.f32("weights", {2, 1}));
    });
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator));
    const std::vector<float> x(4, 1.0f), weights(2, 0.0f);
    return trainer->step({{"x", x}, {"weights", weights}}).status();
  });
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("loss"), std::string::npos) << status.message();
}

std::string ErrorOf(const std::function<Outputs(Inputs&)>& build) {
  Graph graph("g");
  graph.train(optim::Sgd{0.1}, build);
  return graph.status().message();
}

TEST(WeightedLoss, MistakesAreErrors) {
  EXPECT_EQ(
      ErrorOf([](Inputs& in) {
        return weighted_mean(in.f32("x", {4}), in.f32("weights", {4, 1}));
      }),
      "graph g, train: weighted_mean of %x f32[4]: got the weights %weights f32[4,1], expected "
      "the same shape");
  EXPECT_EQ(
      ErrorOf([](Inputs& in) -> Outputs {
        const Var x = in.f32("x", {4});
        return {{"loss", mean(x)}, {"loss_weight", x}};
      }),
      "graph g, train: the loss_weight %x is f32[4], expected the scalar f32[]; take the sum of "
      "the weights");
}

}  // namespace
}  // namespace zg
