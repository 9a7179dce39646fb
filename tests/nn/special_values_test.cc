// NaN stays NaN and infinities are what they are in PyTorch, so that a check for them
// (on_non_finite) finds what went wrong.

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

using Floats = std::vector<float>;
using Function = std::function<Var(Var x)>;

constexpr float kInfinity = HUGE_VALF;
const float kNaN = std::nanf("");

void ExpectSame(const Floats& got, const Floats& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isfinite(want[i])) {
      EXPECT_NEAR(got[i], want[i], 2e-6f * std::max(1.0f, std::abs(want[i]))) << "element " << i;
    } else {
      EXPECT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])))
          << "element " << i << " is " << got[i] << ", expected " << want[i];
    }
  }
}

void ExpectOf(const Shape& shape, const Floats& values, const Function& function,
              const Floats& want) {
  Eager eager;
  ExpectSame(Tensor(function(eager.f32(shape, values))).values(), want);
}

// And the gradient of the result's sum.
void ExpectOf(const Floats& values, const Function& function, const Floats& want,
              const Floats& gradient) {
  Eager eager;
  const Tensor x = eager.f32({static_cast<int64_t>(values.size())}, values);
  x.require_grad();
  const Tensor y = function(x);
  Tensor(sum(y)).backward();
  ExpectSame(y.values(), want);
  ExpectSame(x.grad().values(), gradient);
}

// Relative to the result, which is small.
TEST(SpecialValues, SmallLossesOfSureLogitsDoNotCancel) {
  const std::vector<float> logits = {12, -12, 0, 40, -40};
  const std::vector<double> losses = {6.144193477732806e-06, 6.144193477553017e-06,
                                      0.6931471805599453, 4.248354255291589e-18,
                                      4.248354255291589e-18};
  const std::vector<double> gradients = {-6.144174602207286e-06, 6.144174602214718e-06, 0.25, 0, 0};
  Eager eager;
  const Tensor x = eager.f32({5}, logits), targets = eager.f32({5}, {1, 0, 0.25, 1, 0});
  x.require_grad();
  const Tensor y = bce_with_logits(x, targets, Reduction::kNone);
  Tensor(sum(y)).backward();
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(y.values()[i], losses[i], 1e-6 * losses[i]);
    EXPECT_NEAR(x.grad().values()[i], gradients[i], 1e-7);
  }
  const auto of_zero = [&](Var infinite) {
    return bce_with_logits(infinite, zeros_like(infinite), Reduction::kNone);
  };
  ExpectOf({1}, {kInfinity}, of_zero, {kInfinity});
}

TEST(SpecialValues, CoshHasAGradientNearZero) {
  Eager eager;
  const Tensor x = eager.f32({3}, {1e-8f, -1e-5f, 88});
  x.require_grad();
  const Tensor y = cosh(x);
  Tensor(sum(y)).backward();
  const std::vector<double> want = {1e-8, -1e-5, std::sinh(88.0)};
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(x.grad().values()[i], want[i], 1e-5 * std::abs(want[i]));
  }
  EXPECT_NEAR(y.values()[2], std::cosh(88.0), 1e-5 * std::cosh(88.0));
}

// Their terms keep their digits beside the sum.
TEST(SpecialValues, LongSumsArePrecise) {
  constexpr int64_t kRows = 1 << 18;
  std::vector<float> rows(2 * kRows);
  double mean_of_all = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = 1000.0f + static_cast<float>(i * 7919 % 10007) / 10007.0f;
    mean_of_all += rows[i] / static_cast<double>(rows.size());
  }
  Eager eager;
  const Tensor x = eager.f32({kRows, 2}, rows);
  EXPECT_NEAR(Tensor(mean(x)).values()[0], mean_of_all, 0.01);
  for (const float of_column : Tensor(mean(x, {0})).values()) EXPECT_NEAR(of_column, 1000.5, 0.01);
  for (const float of_column : Tensor(variance(x, {0})).values()) {
    EXPECT_NEAR(of_column, 1.0 / 12, 1e-3);
  }
}

TEST(SpecialValues, SoftmaxOfNaNAndInfinity) {
  const auto log_softmax = [](Var x) { return zg::log_softmax(x, -1); };
  ExpectOf({2}, {1e30f, 1e30f}, log_softmax, {-0.69314718f, -0.69314718f});
  ExpectOf({3}, {10001, 10000, 9990}, log_softmax, {-0.31327390f, -1.31327390f, -11.3132739f});
  ExpectOf({3}, {kNaN, 2, 3}, log_softmax, {kNaN, kNaN, kNaN});
  ExpectOf({3}, {0, kInfinity, 1}, log_softmax, {kNaN, kNaN, kNaN});
  ExpectOf({2}, {-kInfinity, 1}, log_softmax, {-kInfinity, 0});
  for (const int64_t classes : {3, 70}) {
    Eager eager;
    Floats logits(2 * classes, 0.5f);
    logits[1] = kNaN;
    const Tensor x = eager.f32({2, classes}, logits);
    const Tensor targets = eager.i64({2}, {0, 2});
    EXPECT_TRUE(std::isnan(Tensor(cross_entropy(x, targets)).values()[0]));
    ClassLossOptions options;
    options.label_smoothing = 0.1;
    EXPECT_TRUE(std::isnan(Tensor(cross_entropy(x, targets, options)).values()[0]));
  }
}

TEST(SpecialValues, BinaryCrossEntropyOfCertainties) {
  const auto loss = [](const Floats& targets) {
    return [targets](Var x) {
      BceOptions options;
      options.reduction = Reduction::kNone;
      return binary_cross_entropy(sigmoid(x), constant({2}, targets), options);
    };
  };
  ExpectOf({200, -200}, loss({1, 0}), {0, 0}, {0, 0});
  ExpectOf({200, -200}, loss({0, 1}), {100, 88.37f}, {0, -1});
  ExpectOf({0, 0}, loss({0, 1}), {0.693147f, 0.693147f}, {0.5f, -0.5f});
}

TEST(SpecialValues, AVarianceThatIsTooSmallCanGrow) {
  ExpectOf({1e-7f, 2},
           [](Var x) {
             return gaussian_nll_loss(constant({2}, Floats{1, 1}), zeros({2}), x, 1e-2,
                                      Reduction::kNone);
           },
           {47.697415f, 0.596574f}, {-4950, 0.125f});
}

TEST(SpecialValues, SumsOfLogarithmsOfZero) {
  const auto with_itself = [](Var x) { return logaddexp(x, x * 1.0); };
  ExpectOf({-kInfinity, kInfinity, 1}, with_itself, {-kInfinity, kInfinity, 1.693147f}, {1, 1, 1});
  ExpectOf({-kInfinity, 2}, [](Var x) { return logaddexp(x, zeros({2})); }, {0, 2.126928f},
           {0, 0.880797f});
}

// Rows that have diverged do not look like sound ones.
TEST(SpecialValues, NormsOfFarValues) {
  ExpectOf({2, 2}, {1e25f, -1e25f, 1, -1}, [](Var x) { return layer_norm(x); },
           {kNaN, kNaN, 0.999995f, -0.999995f});
}

TEST(SpecialValues, MiddlesOfNaN) {
  ExpectOf({2, 3}, {1, kNaN, 3, 5, 4, 9}, [](Var x) { return median(x, -1); }, {kNaN, 5});
  ExpectOf({2, 3}, {1, kNaN, 3, 5, 4, 9}, [](Var x) { return quantile(x, 1.0, -1); }, {kNaN, 9});
  ExpectOf({2, 3}, {-kInfinity, 0, 1, 5, 4, 9}, [](Var x) { return median(x, -1); }, {0, 5});
}

TEST(SpecialValues, ThresholdsAndConditions) {
  ExpectOf({3}, {kNaN, 0.2f, 3}, [](Var x) { return threshold(x, 0.5, 7); }, {kNaN, 7, 3});
  ExpectOf({3}, {kNaN, 0.2f, -3}, [](Var x) { return hardshrink(x); }, {kNaN, 0, -3});
  const auto f32 = [](Var x) { return to(x, DType::kF32); };
  ExpectOf({2, 2}, {0, kNaN, 0, 0}, [&](Var x) { return f32(any(x, -1)); }, {1, 0});
  ExpectOf({2, 2}, {-1, kNaN, 0, 2}, [&](Var x) { return f32(all(x, -1)); }, {1, 0});
}

TEST(SpecialValues, SlopesAtZero) {
  ExpectOf({0, 1e-3f}, [](Var x) { return log_ndtr(x); }, {-0.693147f, -0.692350f},
           {0.797885f, 0.797247f});
  ExpectOf({0, 0},
           [](Var x) {
             return xlogy(x, constant({2}, Floats{5, 0}));
           },
           {0, 0}, {1.609438f, 0});
  ExpectOf({0, 2},
           [](Var x) {
             return xlogy(x, constant({2}, Floats{kInfinity, 1}));
           },
           {0, 0}, {0, 0});
  ExpectOf({0, 3},
           [](Var x) {
             return atan2(x, constant({2}, Floats{0, 4}));
           },
           {0, 0.643501f}, {0, 0.16f});
  ExpectOf({1, 2}, [](Var x) { return acosh(x); }, {0, 1.316958f}, {kInfinity, 0.577350f});
  ExpectOf({0, 1e-3f, 0.2f}, [](Var x) { return sinc(x); }, {1, 0.999998f, 0.935489f},
           {0, -0.003290f, -0.632361f});
}

TEST(SpecialValues, WholeNumbersAreComparedWithWholeNumbers) {
  Graph graph("g");
  graph.eval("run", [](Inputs& in) {
    const Var x = in.i64("x", {2});
    return where(equal(x, 2.0), 1.0, to(x, DType::kF32)) + to(less(x, 0.5), DType::kF32);
  });
  EXPECT_EQ(graph.status().message(),
            "graph g, eval 'run': less of %x i64[2]: got 0.5, expected a number that i64 can hold");
}

// Gradients for a value that has none beyond it, as adjoint methods take them.
TEST(SpecialValues, GradientsOfWhatStopsThem) {
  Eager eager;
  const Tensor w = eager.f32({2}, {2, 3});
  w.require_grad();
  const Var s = stop_gradient(w * w);
  const std::vector<Var> found = gradients(sum(s * w), {s, w});
  ExpectSame(Tensor(found[0]).values(), {2, 3});
  ExpectSame(Tensor(found[1]).values(), {4, 9});
}

TEST(SpecialValues, DeterminantsHaveGradients) {
  Eager eager;
  const Tensor a = eager.f32({2, 2}, {2, 1, 1, 3});
  a.require_grad();
  const Tensor y = det(a);
  y.backward();
  ExpectSame(y.values(), {5});
  ExpectSame(a.grad().values(), {3, -1, -1, 2});
}

// Where a formula's own steps would be infinite.
TEST(SpecialValues, FarValues) {
  ExpectOf({4}, {-kInfinity, -1e20f, 1e20f, kInfinity}, [](Var x) { return asinh(x); },
           {-kInfinity, -46.744849f, 46.744849f, kInfinity});
  ExpectOf({4}, {-1e4f, -1e20f, 0.5f, 1e20f}, [](Var x) { return acosh(x); },
           {kNaN, kNaN, kNaN, 46.744849f});
  ExpectOf({3}, {-16, -1e10f, -1e30f}, [](Var x) { return erfcx(x); },
           {kInfinity, kInfinity, kInfinity});
  ExpectOf({2}, {kInfinity, 3},
           [](Var x) {
             return hypot(x, constant({2}, Floats{1, 4}));
           },
           {kInfinity, 5});
  const auto by_infinite = [](Var (*function)(Var, Var)) {
    return [function](Var x) { return function(x, full_like(x, HUGE_VAL)); };
  };
  ExpectOf({1, -1}, by_infinite(zg::fmod), {1, -1}, {1, 1});
  ExpectOf({1, -1}, by_infinite(zg::remainder), {1, kInfinity}, {1, 1});
  ExpectOf({-3e38f, -1e18f, 1e18f, 3e38f}, [](Var x) { return gelu(x); }, {0, 0, 1e18f, 3e38f},
           {0, 0, 1, 1});
  ExpectOf({-3e38f, -1e18f, 1e18f, 3e38f}, [](Var x) { return silu(x); }, {0, 0, 1e18f, 3e38f},
           {0, 0, 1, 1});
  ExpectOf({3}, {3e38f, 1e7f, 3e8f}, [](Var x) { return sin(x); },
           {0.874905f, 0.420548f, -0.439552f});
}

// Functions without a slope give none to an infinite gradient either.
TEST(SpecialValues, InfiniteGradients) {
  ExpectOf({-0.5f, 4}, [](Var x) { return sqrt(maximum(x, zeros_like(x))); }, {0, 2}, {0, 0.25f});
  ExpectOf({0.3f, -0.3f},
           [](Var x) {
             return sqrt(floor(x) + constant({2}, Floats{0, 1}));
           },
           {0, 0}, {0, 0});
}

// Unlike clamp these give nothing there, as in PyTorch.
TEST(SpecialValues, SlopesAtBounds) {
  ExpectOf({-1, 0.5f, 1}, [](Var x) { return hardtanh(x); }, {-1, 0.5f, 1}, {0, 1, 0});
  ExpectOf({0, 3, 6}, [](Var x) { return relu6(x); }, {0, 3, 6}, {0, 1, 0});
  ExpectOf({-3, 3}, [](Var x) { return hardswish(x); }, {0, 3}, {0, 1});
}

}  // namespace
}  // namespace zg
