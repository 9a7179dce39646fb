// Functions and modules that are made of others: their result types, parameters and errors. Their
// values are compared with PyTorch's in tests/zero/function_reference_test.cc.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "framework/eager/eager.h"
#include "framework/nn/nn.h"

namespace zg {
namespace {

using Function = std::function<Var(Var)>;

// The type of the function's result for x f32[shape], or the error.
std::string Of(const Shape& shape, const Function& function) {
  Graph graph("g");
  graph.train(optim::Sgd{}, [&](Inputs& in) -> Outputs {
    const Var y = function(in.f32("x", shape));
    return {{"loss", mean(to(y, DType::kF32) + mean(in.f32("z", {1})))}, {"y", y}};
  });
  if (!graph.status().ok()) return graph.status().message();
  std::string type;
  for (const ir::Node* node : graph.ir().NodesOf("output")) {
    if (node->attributes.String("name") == "y") type = node->inputs[0]->type.ToString();
  }
  for (const NamedParameter& parameter : graph.named_parameters()) {
    type += " " + parameter.name + parameter.shape.ToString();
  }
  return type;
}

std::string Of(const Shape& shape, nn::Module& module) {
  return Of(shape, [&](Var x) { return module(x); });
}

std::string Error(const std::string& text) { return "graph g, train: " + text; }

TEST(ModuleTypes, Padding) {
  EXPECT_EQ(Of({2, 3}, [](Var x) { return pad(x, 1, 2, 0, PadMode::kReflect); }), "f32[2,5]");
  EXPECT_EQ(
      Of({2, 3}, [](Var x) { return pad(x, 1, 3, 0, PadMode::kReflect); }),
      Error("pad of %x f32[2,3]: got 3 elements before and 0 after dim 1, expected numbers from "
            "0 to 2"));
  EXPECT_EQ(Of({2, 3}, [](Var x) { return pad(x, 1, 3, 3, PadMode::kCircular); }), "f32[2,9]");
  EXPECT_EQ(
      Of({2, 3}, [](Var x) { return pad(x, 1, 0, 4, PadMode::kCircular); }),
      Error("pad of %x f32[2,3]: got 0 elements before and 4 after dim 1, expected numbers from "
            "0 to 3"));
  EXPECT_EQ(Of({2, 3}, [](Var x) { return pad(x, 0, 9, 0, PadMode::kReplicate); }), "f32[11,3]");
  EXPECT_EQ(Of({2, 3}, [](Var x) { return pad(x, 0, 0, 0, PadMode::kReplicate); }), "f32[2,3]");
  nn::ReflectionPad2d reflect(nullptr, "reflect", {1, 2, 0, 3});
  EXPECT_EQ(Of({2, 1, 4, 5}, reflect), "f32[2,1,7,8]");
  nn::ReplicationPad2d replicate(nullptr, "replicate", 2);
  EXPECT_EQ(Of({2, 1, 4, 5}, replicate), "f32[2,1,8,9]");
}

TEST(ModuleTypes, Shapes) {
  EXPECT_EQ(Of({2, 3, 4}, [](Var x) { return movedim(x, 0, -1); }), "f32[3,4,2]");
  EXPECT_EQ(Of({2, 3, 4}, [](Var x) { return movedim(x, 3, 0); }),
            Error("movedim of %x f32[2,3,4]: got dim 3, expected one from -3 to 2"));
  EXPECT_EQ(Of({2, 12}, [](Var x) { return unflatten(x, -1, {3, -1, 2}); }), "f32[2,3,2,2]");
  EXPECT_EQ(Of({2, 12},
               [](Var x) {
                 return unflatten(x, 1, {5, -1});
               }),
            Error("unflatten of %x f32[2,12]: got the sizes [5,-1], expected a product of 12"));
  EXPECT_EQ(Of({2, 12},
               [](Var x) {
                 return unflatten(x, 1, {-1, -1});
               }),
            Error("unflatten of %x f32[2,12]: got the sizes [-1,-1], expected a product of 12"));
  EXPECT_EQ(Of({2, 3}, [](Var x) { return repeat_interleave(x, 0, 1); }),
            Error("repeat_interleave of %x f32[2,3]: got 0 times, expected at least 1"));
  EXPECT_EQ(Of({2, 1}, [](Var x) { return diff(x); }),
            Error("diff of %x f32[2,1]: dim 1 has 1 elements, expected at least 2"));
  EXPECT_EQ(
      Of({2, 6}, [](Var x) { return channel_shuffle(x, 4); }),
      Error("channel_shuffle of %x f32[2,6]: got 4 groups, expected (samples, channels, ...) and "
            "groups of equal sizes"));
  EXPECT_EQ(Of({2, 3}, [](Var x) { return quantile(x, 1.5, 1); }),
            Error("quantile of %x f32[2,3]: got q 1.5 for 3 elements, expected 0 <= q <= 1 and at "
                  "least one"));
  EXPECT_EQ(Of({2, 3}, [](Var x) { return quantile(x, 1.0, 0, /*keep_dims=*/true); }), "f32[1,3]");
  EXPECT_EQ(Of({2, 3}, [](Var x) { return median(x, 1, /*keep_dims=*/true); }), "f32[2,1]");
}

TEST(ModuleTypes, ProductsAndDistances) {
  const auto products = [](const char* equation, size_t operands) {
    return Of({2, 2}, [&](Var x) { return einsum(equation, std::vector<Var>(operands, x)); });
  };
  EXPECT_EQ(products("ab,bc,cd,de->ae", 4), "f32[2,2]");
  EXPECT_EQ(products("ab,bc,ac->", 3), "f32[]");
  EXPECT_EQ(
      products("ab,bc->ac", 3),
      Error("einsum 'ab,bc->ac' of %x f32[2,2] and %x f32[2,2] and %x f32[2,2]: it names 2, "
            "expected a letter for each dim, as in 'bij,bjk->bik', or '...' for some of them"));
  EXPECT_EQ(products("ab->a", 1), "f32[2]");
  EXPECT_EQ(products("aa", 1), "f32[]");
  EXPECT_EQ(Of({2, 3, 4}, [](Var x) { return cdist(x, concat({x, x}, 1)); }), "f32[2,3,6]");
  EXPECT_EQ(Of({2, 3}, [](Var x) { return multi_margin_loss(x, Var()); }),
            Error("multi_margin_loss: targets: the Var is empty; it was never given a value"));
  EXPECT_EQ(Of({2, 3}, [](Var x) { return multi_margin_loss(x, arange(3)); }),
            Error("multi_margin_loss of %x f32[2,3]: got the targets %iota i64[3], expected scores "
                  "(N, C) and i64 targets (N)"));
}

TEST(ModuleTypes, Images) {
  EXPECT_EQ(Of({2, 3, 5, 7}, [](Var x) { return adaptive_max_pool2d(x, {2, 9}); }), "f32[2,3,2,9]");
  EXPECT_EQ(
      Of({2, 3, 5, 7}, [](Var x) { return adaptive_max_pool2d(x, 0); }),
      Error("adaptive_max_pool2d of %x f32[2,3,5,7]: got the size [0,0], expected numbers from 1 "
            "to 65536"));
  nn::AdaptiveMaxPool2d most(nullptr, "most", 1);
  EXPECT_EQ(Of({2, 3, 5, 7}, most), "f32[2,3,1,1]");
  nn::AdaptiveAvgPool1d average(nullptr, "average", 2);
  EXPECT_EQ(Of({2, 3, 5}, average), "f32[2,3,2]");
  nn::MaxPool1d max_pool(nullptr, "max", 2);
  EXPECT_EQ(Of({2, 3, 6}, max_pool), "f32[2,3,3]");
  nn::AvgPool1d avg_pool(nullptr, "avg", 3, 1, 1);
  EXPECT_EQ(Of({2, 3, 6}, avg_pool), "f32[2,3,6]");
  nn::PixelShuffle shuffle(nullptr, "shuffle", 2);
  EXPECT_EQ(Of({2, 8, 3, 3}, shuffle), "f32[2,2,6,6]");
  nn::Upsample larger(nullptr, "larger", 2, Interpolation::kBilinear);
  EXPECT_EQ(Of({2, 1, 3, 4}, larger), "f32[2,1,6,8]");
  EXPECT_EQ(Of({1, 3, 4}, larger), Error("larger: got x [1,3,4], expected (N, C, H, W)"));
}

TEST(ModuleTypes, InstanceNorm) {
  nn::InstanceNorm2d plain(nullptr, "plain", 3);
  EXPECT_EQ(Of({2, 3, 4, 4}, plain), "f32[2,3,4,4]");
  nn::InstanceNorm1d affine(nullptr, "affine", 3, /*is_affine=*/true);
  EXPECT_EQ(Of({2, 3, 4}, affine), "f32[2,3,4] affine.weight[3] affine.bias[3]");
  EXPECT_EQ(Of({2, 4, 4}, affine),
            Error("affine: got x [2,4,4], expected 3 dims and 3 channels in dim 1"));
  EXPECT_EQ(Of({2, 4}, [](Var x) { return instance_norm(x); }),
            Error("instance_norm of %x f32[2,4]: expected (B, channels, ...)"));
  EXPECT_EQ(
      Of({2, 4}, [](Var x) { return group_norm(x, 3); }),
      Error("group_norm of %x f32[2,4]: got 3 groups, expected (B, channels, ...) and groups of "
            "equal sizes"));
}

TEST(ModuleTypes, Recurrences) {
  nn::RNN rnn(nullptr, "rnn", 3, 2);
  EXPECT_EQ(Of({2, 4, 3}, rnn),
            "f32[2,4,2] rnn.weight_ih_l0[2,3] rnn.weight_hh_l0[2,2] "
            "rnn.bias_ih_l0[2] rnn.bias_hh_l0[2]");
  nn::GRUCell cell(nullptr, "cell", 3, 2);
  const auto run = [&](Var x) { return cell(x); };
  EXPECT_EQ(Of({2, 3}, run),
            "f32[2,2] cell.weight_ih[6,3] cell.weight_hh[6,2] cell.bias_ih[6] cell.bias_hh[6]");
  EXPECT_EQ(Of({2, 4}, run), Error("cell: got x [2,4], expected (B, 3)"));
  EXPECT_EQ(Of({2, 3},
               [&](Var x) {
                 return cell(x, ones({1, 2}));
               }),
            Error("cell: got h [1,2] beside x [2,3], expected [2,2]"));
  nn::LSTMCell lstm(nullptr, "lstm", 3, 2);
  const auto with_state = [&](const Dims& h, const Dims& state) {
    return Of({2, 3}, [&](Var x) {
      Var c = ones(state);
      return lstm(x, ones(h), &c);
    });
  };
  EXPECT_EQ(with_state({2, 2}, {5, 1, 1}),
            Error("lstm: got c [5,1,1] beside x [2,3], expected [2,2]"));
  EXPECT_EQ(with_state({1, 2}, {2, 2}), Error("lstm: got h [1,2] beside x [2,3], expected [2,2]"));
  nn::RecurrentOptions none;
  none.layers = 0;
  nn::GRU empty(nullptr, "empty", 3, 2, none);
  EXPECT_EQ(Of({2, 4, 3}, empty), Error("empty: got 0 layers, expected at least 1"));
  nn::Bilinear product(nullptr, "product", 3, 4, 5);
  EXPECT_EQ(Of({2, 7, 3},
               [&](Var x) {
                 return product(x, ones({2, 7, 4}));
               }),
            "f32[2,7,5] product.weight[5,3,4] product.bias[5]");
  EXPECT_EQ(Of({2, 3},
               [&](Var x) {
                 return product(x, ones({3, 4}));
               }),
            Error("product: got a [2,3] and b [3,4], expected (..., 3) and (..., 4)"));
}

TEST(ModuleTypes, Random) {
  nn::Dropout2d channels(nullptr, "channels", 0.5);
  EXPECT_EQ(Of({2, 3}, channels), Error("channels: got x [2,3], expected (B, C, ...)"));
  EXPECT_EQ(
      Of({2, 3}, [](Var x) { return gumbel_softmax(x, 0.0); }),
      Error("gumbel_softmax of %x f32[2,3]: got the temperature 0, expected a positive number"));
  EXPECT_EQ(
      Of({2, 3}, [](Var x) { return uniform(x, 1.0, 0.0); }),
      Error("uniform of %x f32[2,3]: got low 1 and high 0, expected finite numbers, low <= high"));
  EXPECT_EQ(
      Of({2, 3}, [](Var x) { return normal(x, 0.0, -1.0); }),
      Error("normal of %x f32[2,3]: got mean 0 and stddev -1, expected finite numbers, stddev >= "
            "0"));
  EXPECT_EQ(Of({2, 3, 4}, [](Var x) { return gumbel_softmax(x, 0.5, true, 1); }), "f32[2,3,4]");
  EXPECT_EQ(Of({2, 3, 4}, [](Var x) { return one_hot(categorical(x, 1), 3); }), "f32[2,4,3]");
}

TEST(ModuleTypes, ChoicesHaveTheirProbabilities) {
  constexpr int64_t kRows = 20000;
  const std::vector<double> probabilities = {0.1, 0.6, 0.3};
  std::vector<float> logits;
  for (int64_t i = 0; i < kRows; ++i) {
    for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  }
  Eager eager;
  eager.set_training(true);
  const Tensor x = eager.f32({kRows, 3}, logits);
  const Tensor chosen = categorical(x);
  const Tensor hard = gumbel_softmax(x, 0.7, /*is_hard=*/true);
  std::vector<double> of_chosen(3), of_hard(3);
  for (const int64_t index : chosen.integers()) of_chosen[index] += 1.0 / kRows;
  const std::vector<float> rows = hard.values();
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_TRUE(std::abs(rows[i]) < 1e-6 || std::abs(rows[i] - 1) < 1e-6) << rows[i];
    of_hard[i % 3] += rows[i] / kRows;
  }
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(of_chosen[i], probabilities[i], 0.015);
    EXPECT_NEAR(of_hard[i], probabilities[i], 0.015);
  }
}

TEST(ModuleTypes, APermutationHasEveryNumberOnce) {
  Eager eager;
  const Tensor first = randperm(1000), second = randperm(1000);
  EXPECT_NE(first.integers(), second.integers());
  for (std::vector<int64_t> order : {first.integers(), second.integers()}) {
    EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(order[i], i);
  }
}

// The gradient of a hard choice is that of the soft one.
TEST(ModuleTypes, HardChoicesHaveSoftGradients) {
  std::vector<std::vector<float>> gradients;
  for (const bool is_hard : {false, true}) {
    Eager eager;
    eager.set_training(true);
    nn::Linear layer(nullptr, "layer", 2, 3);
    const Tensor x = eager.f32({4, 2}, {1, 2, -1, 0.5, 3, 0, -2, 1});
    const Tensor weights = eager.f32({3}, {1, -2, 3});
    const Tensor loss = sum(gumbel_softmax(layer(x), 0.5, is_hard) * weights);
    loss.backward();
    gradients.push_back(Tensor(layer.weight).grad().values());
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

}  // namespace
}  // namespace zg
