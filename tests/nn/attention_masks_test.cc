// Masks of dtype bool in attention: their meaning, their gradients, and their errors.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "framework/comm/in_process.h"
#include "framework/eager/eager.h"
#include "framework/nn/nn.h"
#include "zero/zerograph/make_trainer.h"

namespace zg {
namespace {

using Floats = std::vector<float>;

constexpr int64_t kTime = 4;
const Shape kShape = {2, kTime, 6};

Floats Numbers(double phase) {
  Floats numbers(kShape.num_elements());
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(std::sin(phase + 0.7 * static_cast<double>(i)));
  }
  return numbers;
}

// For two heads: the result, and the gradients of q, k and v for a loss that weights all of it.
struct Attended {
  Floats out;
  std::vector<Floats> gradients;
};

Attended Attend(Eager& eager, AttentionOptions options) {
  options.heads = 2;
  std::vector<Tensor> inputs;
  for (const double phase : {0.1, 0.2, 0.3}) {
    inputs.push_back(eager.f32(kShape, Numbers(phase)));
    inputs.back().require_grad();
  }
  const Tensor y = attention(inputs[0], inputs[1], inputs[2], options);
  Tensor(sum(y * eager.f32(kShape, Numbers(0.4)))).backward();
  Attended run = {y.values(), {}};
  for (const Tensor& input : inputs) run.gradients.push_back(input.grad().values());
  return run;
}

void ExpectClose(const Attended& a, const Attended& b) {
  for (size_t i = 0; i < a.out.size(); ++i) ASSERT_NEAR(a.out[i], b.out[i], 1e-6) << i;
  for (size_t input = 0; input < 3; ++input) {
    for (size_t i = 0; i < a.out.size(); ++i) {
      ASSERT_NEAR(a.gradients[input][i], b.gradients[input][i], 1e-6) << input << ", " << i;
    }
  }
}

Tensor Conditions(Eager& eager, const Shape& shape, const std::vector<int64_t>& values) {
  return not_equal(eager.i64(shape, values), 0.0);
}

TEST(AttentionMasks, KeysOfASequence) {
  Eager eager;
  const std::vector<int64_t> values = {1, 1, 0, 1, 0, 1, 1, 0};
  AttentionOptions numbers, conditions;
  numbers.mask = eager.i64({2, kTime}, values);
  conditions.mask = Conditions(eager, {2, kTime}, values);
  const Attended a = Attend(eager, numbers), b = Attend(eager, conditions);
  EXPECT_EQ(a.out, b.out);
  EXPECT_EQ(a.gradients, b.gradients);
}

TEST(AttentionMasks, PairsAsCausal) {
  Eager eager;
  AttentionOptions causal, pairs;
  causal.causal = true;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < kTime * kTime; ++i) values.push_back(i % kTime <= i / kTime ? 1 : 0);
  pairs.bias = Conditions(eager, {1, 1, kTime, kTime}, values);
  ExpectClose(Attend(eager, pairs), Attend(eager, causal));
}

TEST(AttentionMasks, PairsOfEachSequenceAndHead) {
  Eager eager;
  AttentionOptions keys, pairs;
  keys.mask = eager.i64({2}, {2, 3});
  std::vector<int64_t> values;
  for (const int64_t length : {2, 2, 3, 3}) {
    for (int64_t i = 0; i < kTime * kTime; ++i) values.push_back(i % kTime < length ? 1 : 0);
  }
  pairs.bias = Conditions(eager, {2, 2, kTime, kTime}, values);
  ExpectClose(Attend(eager, pairs), Attend(eager, keys));
}

// In head 1, query 2 sees nothing: it gets 0 and gives no gradient, and all others are unchanged.
TEST(AttentionMasks, AQueryThatSeesNoKey) {
  Eager eager;
  std::vector<int64_t> values(2 * kTime * kTime, 1);
  AttentionOptions options;
  options.bias = Conditions(eager, {1, 2, kTime, kTime}, values);
  const Attended all = Attend(eager, options);
  ExpectClose(all, Attend(eager, {}));
  for (int64_t key = 0; key < kTime; ++key) values[kTime * kTime + 2 * kTime + key] = 0;
  options.bias = Conditions(eager, {1, 2, kTime, kTime}, values);
  const Attended run = Attend(eager, options);
  for (int64_t i = 0; i < kShape.num_elements(); ++i) {
    const bool is_blind = i / 6 % kTime == 2 && i % 6 >= 3;
    EXPECT_EQ(run.out[i], is_blind ? 0.0f : all.out[i]) << i;
    EXPECT_EQ(run.gradients[0][i], is_blind ? 0.0f : all.gradients[0][i]) << i;
    EXPECT_TRUE(std::isfinite(run.gradients[1][i]) && std::isfinite(run.gradients[2][i]));
  }
}

// Losses of three steps of two micro-batches, with masked pairs or masked keys.
Floats Train(DType dtype, int ranks, int stage, bool has_pairs) {
  Floats losses;
  const Status status = RunRanks(ranks, [&](Communicator& communicator) -> Status {
    nn::MultiheadAttention layer(nullptr, "layer", 6, 2);
    Graph graph("g");
    graph.train(optim::Sgd{.lr = 0.5}, [&](Inputs& in) {
      const Var x = in.f32("x", kShape);
      const Var mask = in.boolean("mask", has_pairs ? Shape{2, 1, kTime, kTime} : Shape{2, kTime});
      return mean(square(layer(
          x, has_pairs ? nn::AttentionMasks{.bias = mask} : nn::AttentionMasks{.mask = mask})));
    });
    graph.config().micro_batches = 2;
    graph.config().dtype = dtype;
    graph.config().zero.stage = stage;
    graph.config().zero.shard_min_elements = 0;
    ZG_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer, make_trainer(graph, communicator));
    std::vector<uint8_t> mask(has_pairs ? 2 * kTime * kTime : 2 * kTime);
    for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 5 == 3 || (i >= 8 && i < 12) ? 0 : 1;
    Floats x;
    for (int step = 0; step < 3; ++step) {
      ZG_ASSIGN_OR_RETURN(const float loss, trainer->step([&](int64_t micro_batch) {
        x = Numbers(static_cast<double>(2 * step + micro_batch));
        return trainer->feed({{"x", x}, {"mask", mask}});
      }));
      if (communicator.rank() == 0) losses.push_back(loss);
    }
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return losses;
}

TEST(AttentionMasks, InTraining) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const bool has_pairs : {false, true}) {
      const Floats expected = Train(dtype, 1, 0, has_pairs);
      ASSERT_EQ(expected.size(), 3u);
      EXPECT_TRUE(std::isfinite(expected[2]) && expected[2] > 0.0f);
      EXPECT_EQ(Train(dtype, 2, 3, has_pairs), expected) << DTypeName(dtype) << has_pairs;
    }
  }
}

std::string Error(const AttentionOptions& without, bool has_mask, bool has_bias,
                  const Shape& shape) {
  Graph graph("g");
  graph.eval("run", [&](Inputs& in) {
    const Var x = in.f32("x", kShape);
    AttentionOptions options = without;
    options.heads = 2;
    if (has_mask) options.mask = in.boolean("mask", shape);
    if (has_bias) options.bias = in.boolean("bias", shape, Sbp::B());
    return attention(x, x, x, options);
  });
  return graph.status().message();
}

TEST(AttentionMasks, WhatIsRefused) {
  EXPECT_EQ(Error({}, true, false, {2}),
            "graph g, eval 'run': attention: got the mask bool[2], expected bool (B, Tk), false "
            "where a key is hidden");
  EXPECT_EQ(Error({.causal = true}, false, true, {1, 1, kTime, kTime}),
            "graph g, eval 'run': attention: got a bias of dtype bool beside causal, a window or a "
            "mask, expected it alone; let it be false where they hide a key");
  EXPECT_NE(Error({}, false, true, {kTime, kTime}).find("bias is not (1 or B, 1 or H, Tq, Tk)"),
            std::string::npos);
  EXPECT_EQ(Error({}, true, false, {2, kTime}), "");
  EXPECT_EQ(Error({}, false, true, {1, 1, kTime, kTime}), "");
}

}  // namespace
}  // namespace zg
