#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/kernel_runner.h"

namespace zg::testing {
namespace {

// Three steps of an update of `state` (parameter, then moments) with a new gradient each, in place.
std::vector<std::vector<float>> Train(const std::string& op, const ir::Attributes& attributes,
                                      std::vector<std::vector<float>> state,
                                      const std::vector<std::vector<float>>& gradients,
                                      int64_t misalignment = 0) {
  const TensorType type = F32({static_cast<int64_t>(gradients[0].size())});
  KernelRunner runner(op, std::vector<TensorType>(state.size() + 1, type),
                      std::vector<TensorType>(state.size(), type), attributes, misalignment);
  for (size_t i = 0; i < state.size(); ++i) {
    const int input = i == 0 ? 0 : static_cast<int>(i) + 1;
    runner.SetInput(input, state[i]);
    runner.PutInPlace(static_cast<int>(i), input);
  }
  for (size_t step = 0; step < gradients.size(); ++step) {
    runner.SetInput(1, gradients[step]);
    runner.step().step = static_cast<int64_t>(step) + 1;
    runner.step().lr_factor = 1.0 / static_cast<double>(step + 1);
    EXPECT_TRUE(runner.Run().ok());
  }
  for (size_t i = 0; i < state.size(); ++i) state[i] = runner.output(static_cast<int>(i));
  return state;
}

std::vector<std::vector<float>> Gradients(int64_t count) {
  return {Random(count, 11), Random(count, 12), Random(count, 13)};
}

std::vector<double> AsDoubles(const std::vector<float>& values) {
  return std::vector<double>(values.begin(), values.end());
}

TEST(Optimizer, SgdMatchesTheFormula) {
  const int64_t count = 133;
  const std::vector<float> start = Random(count, 1);
  const auto gradients = Gradients(count);
  for (const double decay : {0.0, 0.1}) {
    std::vector<double> p = AsDoubles(start);
    for (int step = 0; step < 3; ++step) {
      for (int64_t i = 0; i < count; ++i) {
        p[i] -= 0.05 / (step + 1) * (gradients[step][i] + decay * p[i]);
      }
    }
    const auto got =
        Train("sgd_update", {{"lr", 0.05}, {"weight_decay", decay}}, {start}, gradients);
    ExpectNear(got[0], p, 1e-7, 1e-6);
  }
}

TEST(Optimizer, SgdMomentumMatchesTheFormula) {
  const int64_t count = 133;
  const std::vector<float> start = Random(count, 1);
  const auto gradients = Gradients(count);
  for (const bool nesterov : {false, true}) {
    std::vector<double> p = AsDoubles(start), m(count);
    for (int step = 0; step < 3; ++step) {
      for (int64_t i = 0; i < count; ++i) {
        const double g = gradients[step][i] + 0.1 * p[i];
        m[i] = 0.9 * m[i] + g;
        p[i] -= 0.05 / (step + 1) * (nesterov ? g + 0.9 * m[i] : m[i]);
      }
    }
    const auto got =
        Train("sgd_momentum_update",
              {{"lr", 0.05}, {"momentum", 0.9}, {"weight_decay", 0.1}, {"nesterov", nesterov}},
              {start, std::vector<float>(count)}, gradients);
    ExpectNear(got[0], p, 1e-7, 1e-6);
    ExpectNear(got[1], m, 1e-7, 1e-6);
  }
}

ir::Attributes AdamAttributes(bool decoupled) {
  return {{"lr", 0.01},      {"beta1", 0.9},        {"beta2", 0.999},
          {"epsilon", 1e-8}, {"weight_decay", 0.1}, {"decoupled", decoupled}};
}

TEST(Optimizer, AdamMatchesTheFormula) {
  const int64_t count = 133;
  const std::vector<float> start = Random(count, 1);
  const auto gradients = Gradients(count);
  for (const bool decoupled : {false, true}) {
    std::vector<double> p = AsDoubles(start), m(count), v(count);
    for (int step = 1; step <= 3; ++step) {
      const double lr = 0.01 / step;
      for (int64_t i = 0; i < count; ++i) {
        double g = gradients[step - 1][i];
        if (decoupled) {
          p[i] -= lr * 0.1 * p[i];
        } else {
          g += 0.1 * p[i];
        }
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.999 * v[i] + 0.001 * g * g;
        const double m_hat = m[i] / (1.0 - std::pow(0.9, step));
        const double v_hat = v[i] / (1.0 - std::pow(0.999, step));
        p[i] -= lr * m_hat / (std::sqrt(v_hat) + 1e-8);
      }
    }
    const auto got =
        Train("adam_update", AdamAttributes(decoupled),
              {start, std::vector<float>(count), std::vector<float>(count)}, gradients);
    ExpectNear(got[0], p, 2e-7, 2e-6);
    ExpectNear(got[1], m, 1e-7, 1e-6);
    ExpectNear(got[2], v, 1e-9, 2e-6);
  }
}

struct ControlledCase {
  std::string op;
  ir::Attributes attributes;
  size_t num_states;
};

std::vector<ControlledCase> ControlledCases() {
  const ir::Attributes sgd = {{"lr", 0.05}, {"weight_decay", 0.1}};
  ir::Attributes momentum = sgd;
  momentum.Set("momentum", 0.9);
  momentum.Set("nesterov", false);
  ir::Attributes nesterov = momentum;
  nesterov.Set("nesterov", true);
  return {{"sgd_update", sgd, 0},
          {"sgd_momentum_update", momentum, 1},
          {"sgd_momentum_update", nesterov, 1},
          {"adam_update", AdamAttributes(false), 2},
          {"adam_update", AdamAttributes(true), 2}};
}

// One update of random values: parameter and states. Without a control if `control` is empty.
std::vector<std::vector<float>> UpdateOnce(const ControlledCase& c, const std::vector<float>& g,
                                           const std::vector<float>& control, bool in_place) {
  const int64_t count = static_cast<int64_t>(g.size());
  std::vector<TensorType> inputs(2 + c.num_states, F32({count}));
  if (!control.empty()) inputs.push_back(F32({2}));
  const std::vector<TensorType> outputs(1 + c.num_states, F32({count}));
  KernelRunner runner(c.op, inputs, outputs, c.attributes);
  runner.step().step = 5;
  runner.SetInput(0, Random(count, 1));
  runner.SetInput(1, g);
  for (size_t i = 0; i < c.num_states; ++i) {
    runner.SetInput(static_cast<int>(i) + 2, Random(count, 20 + i, 0.0f));
  }
  if (!control.empty()) runner.SetInput(static_cast<int>(inputs.size()) - 1, control);
  for (size_t i = 0; in_place && i < outputs.size(); ++i) {
    runner.PutInPlace(static_cast<int>(i), i == 0 ? 0 : static_cast<int>(i) + 1);
  }
  EXPECT_TRUE(runner.Run().ok());
  std::vector<std::vector<float>> results;
  for (size_t i = 0; i < outputs.size(); ++i) results.push_back(runner.output(static_cast<int>(i)));
  return results;
}

TEST(Optimizer, AFactorCountsAsOnTheGradient) {
  const std::vector<float> g = Random(133, 11);
  for (const float factor : {1.0f, 0.3f, 1e-20f}) {
    std::vector<float> scaled = g;
    for (float& value : scaled) value *= factor;
    for (const ControlledCase& c : ControlledCases()) {
      SCOPED_TRACE(c.op);
      const auto expected = UpdateOnce(c, scaled, {}, true);
      const auto got = UpdateOnce(c, g, {factor, 5.0f}, true);
      for (size_t i = 0; i < expected.size(); ++i) ExpectSameBits(got[i], expected[i]);
    }
  }
}

TEST(Optimizer, AFactorOfZeroChangesNothing) {
  std::vector<float> g = Random(133, 11);
  g[7] = std::numeric_limits<float>::quiet_NaN();
  g[100] = std::numeric_limits<float>::infinity();
  for (const ControlledCase& c : ControlledCases()) {
    for (const bool in_place : {false, true}) {
      SCOPED_TRACE(c.op);
      const auto got = UpdateOnce(c, g, {0.0f, 5.0f}, in_place);
      ExpectSameBits(got[0], Random(133, 1));
      for (size_t i = 0; i < c.num_states; ++i)
        ExpectSameBits(got[i + 1], Random(133, 20 + i, 0.0f));
    }
  }
}

TEST(Optimizer, AdamCountsUpdatesAsTheControlSays) {
  const std::vector<float> g = Random(133, 11);
  const ControlledCase adam = {"adam_update", AdamAttributes(true), 2};
  const auto plain = UpdateOnce(adam, g, {}, true);  // step 5
  ExpectSameBits(UpdateOnce(adam, g, {1.0f, 5.0f}, true)[0], plain[0]);
  const auto other = UpdateOnce(adam, g, {1.0f, 3.0f}, true);
  EXPECT_NE(other[0], plain[0]);
  ExpectSameBits(other[1], plain[1]);
}

// A bucket is cut at different places for different numbers of ranks.
TEST(Optimizer, AdamBitsDoNotDependOnThePlace) {
  const int64_t count = 333;
  const auto run = [&](int64_t begin, int64_t end) {
    const auto cut = [&](const std::vector<float>& values) {
      return std::vector<float>(values.begin() + begin, values.begin() + end);
    };
    std::vector<std::vector<float>> gradients;
    for (const auto& gradient : Gradients(count)) gradients.push_back(cut(gradient));
    return Train("adam_update", AdamAttributes(true),
                 {cut(Random(count, 1)), cut(Random(count, 2, 0.0f)), cut(Random(count, 3, 0.0f))},
                 gradients, begin % 3);
  };
  const auto whole = run(0, count);
  for (const int64_t begin : {1, 16, 100, 317, 332}) {
    for (const int64_t end : {begin + 1, std::min(begin + 40, count), count}) {
      const auto part = run(begin, end);
      for (int i = 0; i < 3; ++i) {
        ExpectSameBits(part[i],
                       std::vector<float>(whole[i].begin() + begin, whole[i].begin() + end));
      }
    }
  }
}

// Blocks that are checked one by one end at multiples of 8192.
TEST(Optimizer, LookingForInfinitiesChangesNoBit) {
  for (const int64_t count : {5, 8192, 8193, 20001}) {
    const auto run = [&](bool stop) {
      KernelRunner runner("adam_update", std::vector<TensorType>(4, F32({count})),
                          std::vector<TensorType>(3, F32({count})), AdamAttributes(true));
      for (int i = 0; i < 4; ++i) runner.SetInput(i, Random(count, 20 + i, 0.0f, 1.0f));
      runner.step().stop_on_non_finite = stop;
      EXPECT_TRUE(runner.Run().ok());
      return std::vector<std::vector<float>>{runner.output(0), runner.output(1), runner.output(2)};
    };
    EXPECT_EQ(run(true), run(false)) << count;
  }
}

TEST(Optimizer, AParameterThatBecomesInfiniteIsAnErrorWhenAsked) {
  const int64_t count = 20001;
  for (const DType gradient : {DType::kF32, DType::kBF16}) {
    for (const int64_t where : {int64_t{0}, int64_t{8191}, count - 1}) {
      for (const float value : {INFINITY, -INFINITY, NAN}) {
        KernelRunner runner("sgd_update", {F32({count}), {gradient, Shape{count}}}, {F32({count})},
                            {{"lr", 0.1}, {"weight_decay", 0.0}});
        std::vector<float> g(count, 1.0f);
        g[where] = value;
        runner.SetInput(0, Random(count));
        runner.SetInput(1, g);
        EXPECT_TRUE(runner.Run().ok());
        runner.step().stop_on_non_finite = true;
        EXPECT_EQ(runner.Run().message(), "an updated parameter is not finite");
      }
    }
  }
}

// More than one block, and a part of one.
TEST(Optimizer, CopiesAreCastsAndChangeNothingElse) {
  const int64_t count = 20011;
  const std::vector<float> start = Random(count, 1);
  const std::vector<float> gradient = Random(count, 2);
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const float factor : {1.0f, 0.5f, 0.0f}) {
      for (const bool asks : {false, true}) {
        ir::Attributes attributes = {{"lr", 0.05}, {"momentum", 0.9}, {"weight_decay", 0.1}};
        attributes.Set("nesterov", false);
        const std::vector<TensorType> inputs = {F32({count}), F32({count}), F32({count}), F32({2})};
        std::vector<TensorType> outputs = {F32({count}), F32({count})};
        const auto run = [&](KernelRunner& runner) {
          runner.SetInput(0, start);
          runner.SetInput(1, gradient);
          runner.SetInput(2, gradient);
          runner.SetInput(3, std::vector<float>{factor, 1.0f});
          runner.step().stop_on_non_finite = asks;
          EXPECT_TRUE(runner.Run().ok());
        };
        KernelRunner plain("sgd_momentum_update", inputs, outputs, attributes);
        run(plain);
        outputs.push_back({dtype, {count}});
        attributes.Set("copy_dtype", dtype);
        KernelRunner copying("sgd_momentum_update", inputs, outputs, attributes);
        run(copying);
        KernelRunner cast("cast", {F32({count})}, {{dtype, {count}}}, {{"dtype", dtype}});
        cast.SetInput(0, plain.output(0));
        EXPECT_TRUE(cast.Run().ok());
        EXPECT_EQ(copying.output(0), plain.output(0));
        EXPECT_EQ(copying.output(1), plain.output(1));
        EXPECT_EQ(copying.output(2), cast.output(0));
      }
    }
  }
}

}  // namespace
}  // namespace zg::testing
