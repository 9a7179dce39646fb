// Tensors: values, gradients, lifetimes, text, and errors that end the process.
#include "framework/eager/eager.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <memory>

#include "framework/nn/nn.h"

namespace zg {
namespace {

using Floats = std::vector<float>;

TEST(Eager, FunctionsRunAtOnce) {
  Eager eager;
  const Tensor x = eager.f32({2, 2}, {1, -2, 3, -4});
  EXPECT_EQ(Tensor(relu(x)).values(), (Floats{1, 0, 3, 0}));
  const Tensor y = 2.0 * x + 1.0;
  EXPECT_EQ(y.values(), (Floats{3, -3, 7, -7}));
  EXPECT_EQ(Tensor(sum(y)).item(), 0.0f);
  EXPECT_EQ(Tensor(transpose(x, 0, 1)).values(), (Floats{1, 3, -2, -4}));
  EXPECT_EQ(Tensor(reshape(x, {4})).values(), x.values());  // a view
  EXPECT_EQ(eager.i64({2}, {7, 8}).integers(), (std::vector<int64_t>{7, 8}));
}

TEST(Eager, Conditions) {
  Eager eager;
  const Tensor mask = eager.boolean({2, 2}, {true, false, false, true});
  EXPECT_EQ(mask.integers(), (std::vector<int64_t>{1, 0, 0, 1}));
  EXPECT_EQ(Tensor(where(mask, eager.f32({2}, {1, 2}), 0.5)).values(), (Floats{1, 0.5, 0.5, 2}));
  EXPECT_EQ(Tensor(!mask).integers(), (std::vector<int64_t>{0, 1, 1, 0}));
}

TEST(Eager, Constants) {
  Eager eager;
  EXPECT_EQ(Tensor(full({2, 1}, -1.5)).values(), (Floats{-1.5, -1.5}));
  EXPECT_EQ(Tensor(zeros({})).item(), 0.0f);
  EXPECT_EQ(Tensor(ones({2}, DType::kI64)).integers(), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(Tensor(full({2}, 3.0, DType::kBool)).integers(), (std::vector<int64_t>{1, 1}));
  const Tensor x = eager.f32({2}, {NAN, 1});
  x.require_grad();
  EXPECT_EQ(Tensor(ones_like(x)).values(), (Floats{1, 1}));
  EXPECT_EQ(Tensor(full_like(eager.i64({2}, {7, 8}), -2.0)).integers(),
            (std::vector<int64_t>{-2, -2}));
  EXPECT_EQ(Tensor(zeros_like(eager.boolean({1}, {true}))).integers(), (std::vector<int64_t>{0}));
  Tensor(sum(x + full_like(x, 2.0) * ones({2}))).backward();
  EXPECT_EQ(x.grad().values(), (Floats{1, 1}));
}

TEST(Eager, Gradients) {
  Eager eager;
  const Tensor x = eager.f32({3}, {1, 2, 3});
  const Tensor fixed = eager.f32({3}, {1, 1, 1});
  x.require_grad();
  const Tensor loss = sum(x * x * fixed);
  EXPECT_TRUE(x.grad().empty());
  loss.backward();
  EXPECT_EQ(x.grad().values(), (Floats{2, 4, 6}));
  EXPECT_TRUE(fixed.grad().empty());
  loss.backward();  // accumulates
  EXPECT_EQ(x.grad().values(), (Floats{4, 8, 12}));
  Tensor(sum(x)).backward();
  EXPECT_EQ(x.grad().values(), (Floats{5, 9, 13}));
  eager.zero_grad();
  EXPECT_TRUE(x.grad().empty());
}

// The inputs of a result stay alive although their handles are gone.
TEST(Eager, TapeOutlivesHandles) {
  Eager eager;
  const Tensor x = eager.f32({2}, {1, 2});
  x.require_grad();
  Tensor loss;
  {
    const Tensor y = square(x);
    loss = sum(y * y);
  }
  loss.backward();
  EXPECT_EQ(x.grad().values(), (Floats{4, 32}));
}

TEST(Eager, TensorsOutliveTheEager) {
  Tensor y;
  {
    Eager eager;
    y = eager.f32({2}, {1, 2}) * 3.0;
  }
  EXPECT_EQ(y.values(), (Floats{3, 6}));
}

struct Net : nn::Module {
  nn::Linear hidden{this, "hidden", 3, 4};
  nn::Linear output{this, "output", 4, 1};
  nn::Buffer mean{this, "mean", {3}, Initializer::Zeros()};

  Var forward(Var x) override {
    if (nn::is_training()) mean.update(zg::mean(x, {0}));
    return output(tanh(hidden(x - mean)));
  }
};

TEST(Eager, PaddingBeginsWithZerosAndHasNoGradient) {
  nn::EmbeddingOptions options;
  options.padding_idx = 1;
  nn::Embedding table(nullptr, "table", 3, 2, options);
  Eager eager;
  const Tensor y = table(eager.i64({4}, {2, 1, 0, 1}));
  const Floats rows = Tensor(table.weight).values();
  EXPECT_EQ(y.values(), (Floats{rows[4], rows[5], 0, 0, rows[0], rows[1], 0, 0}));
  Tensor(sum(y)).backward();
  EXPECT_EQ(Tensor(table.weight).grad().values(), (Floats{1, 1, 0, 0, 1, 1}));
  nn::Embedding loaded(nullptr, "loaded", 3, 2, options);
  loaded.weight.set_initializer(Initializer::Constant(0.5));
  EXPECT_EQ(Tensor(loaded(eager.i64({1}, {1}))).values(), (Floats{0.5, 0.5}));
}

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * 4096;
}

TEST(Eager, WithoutGradientsKeepsNoHistory) {
  constexpr int64_t kElements = 1 << 20;
  Eager eager;
  nn::Linear linear(nullptr, "linear", 2, 2);
  const Tensor start = eager.f32({kElements}, Floats(kElements, 0.5f));
  start.require_grad();
  const Tensor small = eager.f32({1, 2}, {1, 2});
  const Floats with_gradient = Tensor(linear(small)).values();
  {
    const NoGrad no_grad(eager);
    const int64_t before = ResidentBytes();
    Var x = start;
    for (int i = 0; i < 40; ++i) x = sin(x) + square(x) * x - x * x;  // several of 4 MiB each
    EXPECT_LT(ResidentBytes() - before, int64_t{100} << 20);
    EXPECT_EQ(Tensor(linear(small)).values(), with_gradient);
    EXPECT_EQ(Tensor(sum(start)).item(), 0.5f * kElements);
  }
  Tensor(sum(linear(small))).backward();
  EXPECT_FALSE(Tensor(linear.weight).grad().empty());
}

TEST(Eager, StepsTrainAndSetBuffers) {
  Net net;
  Eager eager{{/*seed=*/3, /*training=*/true}};
  const Tensor x = eager.f32({2, 3}, {1, 2, 3, 3, 2, 1});
  const Tensor target = eager.f32({2, 1}, {0.5, -0.5});
  Floats losses;
  for (int step = 0; step < 20; ++step) {
    const Tensor loss = mse_loss(net(x), target);
    loss.backward();
    EXPECT_FALSE(Tensor(net.hidden.weight).grad().empty());
    eager.step(optim::Adam{0.05});
    EXPECT_TRUE(Tensor(net.hidden.weight).grad().empty());
    losses.push_back(loss.item());
  }
  EXPECT_LT(losses.back(), 0.2f * losses.front());
  EXPECT_EQ(Tensor(net.mean).values(), (Floats{2, 2, 2}));
  eager.set_training(false);
  net(eager.f32({1, 3}, {9, 9, 9}));
  EXPECT_EQ(Tensor(net.mean).values(), (Floats{2, 2, 2}));
}

// With an optimizer that averages weights, as a graph's evals do.
// Adam corrects its averages by the number of a parameter's own updates: the first is by lr.
TEST(Eager, ParametersCountTheirOwnUpdates) {
  struct Two : nn::Module {
    nn::Parameter early{this, "early", {1}, Initializer::Zeros()};
    nn::Parameter late{this, "late", {1}, Initializer::Zeros()};
  } model;
  Eager eager;
  for (int step = 0; step < 3; ++step) {
    Tensor loss = sum(3.0 * Var(model.early));
    if (step == 2) loss = loss + sum(5.0 * Var(model.late));
    loss.backward();
    eager.step(optim::Adam{0.01});
  }
  EXPECT_NEAR(Tensor(model.early).item(), -0.03, 1e-6);
  EXPECT_NEAR(Tensor(model.late).item(), -0.01, 1e-6);
}

TEST(Eager, EvaluationReadsTheAverage) {
  Net net;
  Eager eager{{/*seed=*/3, /*training=*/true}};
  const Tensor x = eager.f32({2, 3}, {1, 2, 3, 3, 2, 1});
  const optim::Rule rule = optim::with_ema(optim::rule_of(optim::Sgd{0.5}), 0.5);
  std::vector<Floats> weights = {Tensor(net.output.weight).values()};
  for (int step = 0; step < 2; ++step) {
    Tensor(sum(net(x))).backward();
    eager.step(rule);
    weights.push_back(Tensor(net.output.weight).values());
  }
  eager.set_training(false);
  const Tensor average = Tensor(net.output.weight);
  for (size_t i = 0; i < weights[0].size(); ++i) {
    const float expected = 0.25f * weights[0][i] + 0.25f * weights[1][i] + 0.5f * weights[2][i];
    EXPECT_NEAR(average.values()[i], expected, 1e-6f);
    EXPECT_NE(average.values()[i], weights[2][i]);
  }
  eager.set_training(true);
  EXPECT_EQ(Tensor(net.output.weight).values(), weights[2]);
}

TEST(Eager, Text) {
  Eager eager;
  EXPECT_EQ(eager.f32({2, 3}, {1, 2.5, -0.25, 0, 1, 4}).to_string(),
            "f32[2,3]\n"
            "[[ 1.0000,  2.5000, -0.2500],\n"
            " [ 0.0000,  1.0000,  4.0000]]");
  EXPECT_EQ(eager.i64({2}, {1, -10}).to_string(), "i64[2]\n[  1, -10]");
  EXPECT_EQ(eager.f32({}, {1e-7f}).to_string(), "f32[]\n1.0000e-07");
  EXPECT_EQ(eager.f32({0}, {}).to_string(), "f32[0]\n[]");
  EXPECT_EQ(Tensor(expand(eager.f32({1, 1}, {7}), {2000, 2})).to_string(),
            "f32[2000,2]\n[[7.0000, 7.0000],\n [7.0000, 7.0000],\n [7.0000, 7.0000],\n ...,\n "
            "[7.0000, 7.0000],\n [7.0000, 7.0000],\n [7.0000, 7.0000]]");
  EXPECT_EQ(Tensor().to_string(), "empty");
  Graph graph("g");
  std::string traced;
  graph.eval("run", [&](Inputs& in) {
    const Var x = in.f32("x", {2});
    traced = Tensor(x).to_string();
    return x;
  });
  EXPECT_EQ(traced, "%x: f32[2]");
}

TEST(EagerDeathTest, ErrorsNameWhatIsWrong) {
  const auto dies = [](const auto& function, const std::string& message) {
    EXPECT_EXIT(
        {
          Eager eager;
          Net net;
          function(eager, net);
        },
        ::testing::ExitedWithCode(1), message);
  };
  dies([](Eager& eager, Net& net) { net(eager.f32({1, 2}, {1, 2})); }, "error: .*subtract");
  dies([](Eager& eager, Net&) { eager.f32({2}, {1}); },
       "error: Eager: got 1 values for a tensor f32\\[2\\], expected one per element");
  dies(
      [](Eager& eager, Net&) {
        eager.f32({2}, {1, 2}).item();
      },
      "error: Tensor::item: it is f32\\[2\\], expected one element");
  dies(
      [](Eager& eager, Net&) {
        eager.f32({2}, {1, 2}).backward();
      },
      "error: backward: %x is f32\\[2\\], expected the scalar f32\\[\\]");
  dies(
      [](Eager& eager, Net&) {
        Tensor(sum(eager.f32({2}, {1, 2}))).backward();
      },
      "error: backward: %sum depends on no trainable parameter");
  dies([](Eager&, Net&) { Tensor().values(); }, "error: Tensor::values: the tensor is empty");
  dies(
      [](Eager& eager, Net& net) {
        const Tensor x = eager.f32({1, 3}, {1, 2, 3});
        const Tensor loss = sum(net(x));
        loss.backward();
        eager.step(optim::Sgd{0.1});
        loss.backward();
      },
      "error: backward: .* was computed before the step that changed parameters");
  dies(
      [](Eager& eager, Net& net) {
        const Tensor x = eager.f32({1, 3}, {1, 2, 3});
        Tensor(sum(net(x))).backward();
        eager.step(optim::Sgd{.lr = 0.1, .momentum = 0.9});
        Tensor(sum(net(x))).backward();
        eager.step(optim::Adam{0.1});
      },
      "error: hidden.weight: Eager::step: got adam_update with the states exp_avg f32\\[4,3\\], "
      "exp_avg_sq f32\\[4,3\\], expected sgd_momentum_update with momentum_buffer f32\\[4,3\\], as in "
      "the steps before; take all steps of an Eager with one kind of optimizer");
  dies(
      [](Eager& eager, Net& net) {
        eager.set_training(true);
        const Tensor x = eager.f32({1, 3}, {1, 2, 3});
        Tensor(sum(net(x))).backward();
        eager.step(optim::with_ema(optim::rule_of(optim::Adam{0.1}), 0.5));
        eager.set_training(false);
        Tensor(sum(net(x))).backward();
      },
      "error: backward: %sum was computed from the weights that the optimizer has for evaluation, "
      "such as a moving average, which have no gradient; call set_training\\(true\\) before "
      "training goes on");
  EXPECT_EXIT(relu(Var()), ::testing::ExitedWithCode(1),
              "relu was used outside the function given to Graph::train or Graph::eval");
}

TEST(EagerDeathTest, NumbersThatCannotBe) {
  EagerOptions options;
  options.threads = 0;
  EXPECT_EXIT(Eager{options}, ::testing::ExitedWithCode(1),
              "Eager: threads: got 0, expected 1 to 1024");
  EXPECT_EXIT(Eager{}.step(optim::Sgd{}, std::nan("")), ::testing::ExitedWithCode(1),
              "Eager::step: got a learning rate factor of nan, expected a finite number >= 0");
}

}  // namespace
}  // namespace zg
