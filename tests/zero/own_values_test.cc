// Values that each micro-batch has of its own, beside those of its samples: random ones of operands
// that all micro-batches share, and results whose samples do not lie along dim 0. The same bits for any
// number of ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "framework/comm/in_process.h"
#include "framework/nn/nn.h"
#include "framework/ops/register_all_ops.h"
#include "zero/zerograph/make_trainer.h"

namespace zg::zero {
namespace {

constexpr int64_t kMicroBatches = 4;
constexpr int64_t kSamples = 3;  // of a micro-batch
constexpr int64_t kIn = 5;

struct Model : nn::Module {
  nn::Linear hidden{this, "hidden", kIn, 6};
  nn::Linear last{this, "last", 6, 2};
  nn::Parameter table{this, "table", {kSamples, 2}, Initializer::Normal(0.5)};
  nn::Buffer noise{this, "noise", {2}, Initializer::Zeros()};
};

using Build = std::function<Outputs(Model& model, Var x)>;

struct Run {
  std::vector<float> losses;
  std::string parameters;         // their digest
  std::vector<float> result;      // of the last step, of all micro-batches
  std::vector<float> first_part;  // rank 0's own
};

Run Train(int ranks, int stage, const Build& build) {
  RegisterAllOps();
  Run run;
  const Status status = RunRanks(ranks, [&](Communicator& communicator) -> Status {
    Model model;
    Graph graph("own");
    const auto with_input = [&](Inputs& in) { return build(model, in.f32("x", {kSamples, kIn})); };
    graph.train(optim::Adam{.lr = 0.1}, with_input);
    graph.config().enable_zero({.stage = stage, .bucket_bytes = 64});
    graph.config().zero.shard_min_elements = 0;
    graph.config().micro_batches = kMicroBatches;
    ZG_ASSIGN_OR_RETURN(const auto trainer, make_trainer(graph, communicator));
    std::vector<float> losses;
    std::vector<float> x(kSamples * kIn);
    for (int64_t step = 0; step < 3; ++step) {
      ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
        for (size_t i = 0; i < x.size(); ++i) {
          x[i] = static_cast<float>((i * 5 + 3 * micro_batch + 7 * step) % 11) / 4.0f - 1.0f;
        }
        return trainer->feed({{"x", x}});
      }));
      losses.push_back(loss);
    }
    ZG_ASSIGN_OR_RETURN(const std::vector<float> result, trainer->step_result("y"));
    ZG_ASSIGN_OR_RETURN(const std::vector<float> own, trainer->local_step_result("y"));
    ZG_ASSIGN_OR_RETURN(const TensorDigest digest, trainer->digest_parameters());
    if (communicator.rank() == 0) run = {losses, digest.sha256, result, own};
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return run;
}

void ExpectSameOnAnyRanks(const Build& build, size_t result_size) {
  const Run one = Train(1, 0, build);
  EXPECT_EQ(one.result.size(), result_size);
  for (const int ranks : {2, 4}) {
    for (const int stage : {0, 3}) {
      SCOPED_TRACE(fmt::format("{} ranks, stage {}", ranks, stage));
      const Run other = Train(ranks, stage, build);
      EXPECT_EQ(other.losses, one.losses);
      EXPECT_EQ(other.parameters, one.parameters);
      EXPECT_EQ(other.result, one.result);
      EXPECT_EQ(other.first_part.size(), result_size / ranks);
    }
  }
}

// The gradient that reaches dropout is the same in all micro-batches.
TEST(OwnValues, MasksOfALossThatIsLinearInThem) {
  ExpectSameOnAnyRanks(
      [](Model& model, Var x) {
        const Var y = model.last(dropout(model.hidden(x), 0.5));
        return Outputs{{"loss", mean(y)}, {"y", y}};
      },
      kMicroBatches * kSamples * 2);
}

TEST(OwnValues, RandomNumbersForParameters) {
  ExpectSameOnAnyRanks(
      [](Model& model, Var x) {
        const Var h = relu(model.hidden(x));
        const Var noisy = model.last.weight + 0.1 * normal(model.last.weight);
        const Var y = linear(h, noisy, dropout(*model.last.bias, 0.3)) + dropout(model.table, 0.2);
        return Outputs{{"loss", mean(square(y - 1.0))}, {"y", y}};
      },
      kMicroBatches * kSamples * 2);
}

TEST(OwnValues, RandomNumbersForConstants) {
  ExpectSameOnAnyRanks(
      [](Model& model, Var x) {
        const Var noise = normal(zeros({kSamples, kIn}));
        const Var y = model.last(tanh(model.hidden(noise))) * mean(x);
        return Outputs{{"loss", mean(square(y)) + mean(model.last(model.hidden(x)))}, {"y", y}};
      },
      kMicroBatches * kSamples * 2);
}

// Nothing of the program depends on the micro-batch's data but the random numbers.
TEST(OwnValues, LossesOfRandomNumbersAlone) {
  ExpectSameOnAnyRanks(
      [](Model& model, Var x) {
        const Var y = model.last(model.hidden(uniform(zeros({kSamples, kIn}))));
        return Outputs{{"loss", mean(square(y)) + 0.0 * sum(x)}, {"y", y}};
      },
      kMicroBatches * kSamples * 2);
}

// A buffer gets the mean of the micro-batches' values.
TEST(OwnValues, BuffersOfRandomNumbers) {
  ExpectSameOnAnyRanks(
      [](Model& model, Var x) {
        const Var y = model.last(model.hidden(x)) + model.noise;
        model.noise.update(normal(zeros({2})));
        return Outputs{{"loss", mean(square(y))}, {"y", y}};
      },
      kMicroBatches * kSamples * 2);
}

TEST(OwnValues, ResultsWithSamplesAlongAnotherDim) {
  ExpectSameOnAnyRanks(
      [](Model& model, Var x) {
        const Var h = model.hidden(x);
        return Outputs{{"loss", mean(square(model.last(h)))}, {"y", stack({h, h * 2.0}, 0)}};
      },
      kMicroBatches * kSamples * 6 * 2);
}

}  // namespace
}  // namespace zg::zero
