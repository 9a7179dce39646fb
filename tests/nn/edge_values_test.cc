// Functions at the edges of what they take: vectors of zeros, targets of 0, rows that do not count,
// powers of 0. Results and gradients are finite, and those of PyTorch.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "framework/eager/eager.h"
#include "framework/nn/nn.h"

namespace zg {
namespace {

using Floats = std::vector<float>;
using Function = std::function<Var(Eager& eager, Var x)>;

constexpr float kInfinity = HUGE_VALF;

struct Outcome {
  Floats y;
  Floats dx;  // of the sum of y
};

Outcome Of(const Shape& shape, const Floats& values, const Function& function) {
  Eager eager;
  const Tensor x = eager.f32(shape, values);
  x.require_grad();
  const Tensor y = function(eager, x);
  Tensor(sum(y)).backward();
  return {y.values(), x.grad().values()};
}

void ExpectNear(const Floats& got, const Floats& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 2e-6f * std::max(1.0f, std::abs(want[i]))) << "element " << i;
  }
}

void Expect(const Outcome& got, const Floats& y, const Floats& dx) {
  ExpectNear(got.y, y);
  ExpectNear(got.dx, dx);
}

TEST(EdgeValues, DeviationsOfEqualElements) {
  Expect(Of({2, 2}, {3, 3, 1, 3}, [](Eager&, Var x) { return stddev(x, {-1}); }), {0, 1.414214f},
         {0, 0, -0.707107f, 0.707107f});
  Expect(Of({2, 2}, {0, 0, 3, 4}, [](Eager&, Var x) { return normalize(x); }), {0, 0, 0.6f, 0.8f},
         {1e12f, 1e12f, 0.032f, -0.024f});
}

TEST(EdgeValues, LogarithmsOfLargePowers) {
  Expect(Of({3}, {1000, -1000, 0},
            [](Eager& eager, Var x) {
              return logaddexp(x, eager.f32({3}, {0, -1000, 0}));
            }),
         {1000, -999.306853f, 0.693147f}, {1, 0.5f, 0.5f});
}

TEST(EdgeValues, NormsOfZeros) {
  const Floats rows = {0, 0, 3, 4, 0, 2};
  Expect(Of({3, 2}, rows, [](Eager&, Var x) { return norm(x, {-1}); }), {0, 5, 2},
         {0, 0, 0.6f, 0.8f, 0, 1});
  const auto of = [&](double p) {
    return Of({3, 2}, rows, [p](Eager&, Var x) { return vector_norm(x, p, {-1}); });
  };
  Expect(of(2.0), {0, 5, 2}, {0, 0, 0.6f, 0.8f, 0, 1});
  Expect(of(1.0), {0, 7, 2}, {0, 0, 1, 1, 0, 1});
  Expect(of(3.0), {0, 4.497941f, 2}, {0, 0, 0.444851f, 0.790847f, 0, 1});
  Expect(of(0.5), {0, 13.928203f, 2}, {0, 0, 2.154701f, 1.866025f, 0, 1});
  Expect(of(-1.0), {0, 1.714286f, 0}, {0, 0, 0.326531f, 0.183673f, 0, 0});
  Expect(of(HUGE_VAL), {0, 4, 2}, {0, 0, 0, 1, 0, 1});
}

// What keeps the edges from NaN changes no bit elsewhere.
TEST(EdgeValues, OtherValuesHaveTheBitsOfThePlainFormulas) {
  Floats values(40);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i * 7 % 23) / 11.0f - 1.03f;
  }
  const auto expect = [&](const Function& function, const Function& plain) {
    const Outcome got = Of({5, 8}, values, function), want = Of({5, 8}, values, plain);
    EXPECT_EQ(got.y, want.y);
    EXPECT_EQ(got.dx, want.dx);
  };
  expect([](Eager&, Var x) { return norm(x, {-1}); },
         [](Eager&, Var x) { return sqrt(sum(square(x), {-1})); });
  for (const double p : {0.7, 3.0, -1.3}) {
    expect([p](Eager&, Var x) { return vector_norm(x, p, {-1}); },
           [p](Eager&, Var x) { return pow(sum(pow(abs(x), p), {-1}), 1.0 / p); });
  }
  expect([](Eager&, Var x) { return kl_div(-square(x), softmax(x)); },
         [](Eager&, Var x) {
           const Var target = softmax(x);
           return mean(sum(target * (log(target) + square(x)), {-1}));
         });
}

TEST(EdgeValues, CosinesOfZeros) {
  const auto cosine = [](Eager& eager, Var x) {
    return cosine_similarity(x, eager.f32({2, 2}, {0, 0, 1, 1}));
  };
  Expect(Of({2, 2}, {0, 0, 1, 0}, cosine), {0, 0.70710678f}, {0, 0, 0, 0.70710678f});
  const auto loss = [](Eager& eager, Var x) {
    return cosine_embedding_loss(x, eager.f32({1, 2}, {0, 0}), eager.i64({1}, {1}));
  };
  Expect(Of({1, 2}, {0, 0}, loss), {1}, {0, 0});
}

TEST(EdgeValues, DivergenceOfTargetsOfZero) {
  const auto of = [](Floats target, bool is_log) -> Function {
    return [=](Eager& eager, Var x) {
      return kl_div(x, eager.f32({2, 2}, target), Reduction::kMean, is_log);
    };
  };
  const Floats prediction = {std::log(0.5f), std::log(0.5f), -kInfinity, 0};
  Expect(Of({2, 2}, prediction, of({0, 1, 0, 1}, false)), {0.34657359f}, {0, -0.5f, 0, -0.5f});
  Expect(Of({2, 2}, prediction, of({-kInfinity, 0, -kInfinity, 0}, true)), {0.34657359f},
         {0, -0.5f, 0, -0.5f});
  const auto of_target = [](Eager& eager, Var x) {
    return kl_div(eager.f32({1, 2}, {std::log(0.5f), std::log(0.5f)}), x);
  };
  Expect(Of({1, 2}, {0, 1}, of_target), {0.69314718f}, {0, 1.69314718f});
}

TEST(EdgeValues, DivergenceOfLogarithms) {
  const auto of = [](Reduction reduction, bool is_log) -> Function {
    return [=](Eager& eager, Var x) {
      const Var target = eager.f32({2, 2}, {0.25f, 0.75f, 0.5f, 0.5f});
      return kl_div(x, is_log ? log(target) : target, reduction, is_log);
    };
  };
  const Floats prediction = {-1, -0.5f, -2, -0.25f};
  for (const Reduction reduction : {Reduction::kMean, Reduction::kSum, Reduction::kNone}) {
    const Outcome numbers = Of({2, 2}, prediction, of(reduction, false));
    Expect(Of({2, 2}, prediction, of(reduction, true)), numbers.y, numbers.dx);
  }
}

TEST(EdgeValues, AnglesOfAllDirections) {
  const auto angle = [](const Floats& height) -> Function {
    return [=](Eager& eager, Var x) {
      return atan2(eager.f32({static_cast<int64_t>(height.size())}, height), x);
    };
  };
  const Floats x = {1, 0, -1, -1, 0, 2, -3};
  const Floats angles = {0.78539816f,  1.57079633f,  2.35619449f, -2.35619449f,
                         -1.57079633f, -0.46364761f, 3.14159265f};
  Expect(Of({7}, x, angle({1, 2, 1, -1, -3, -1, 0})), angles,
         {-0.5f, -0.5f, -0.5f, 0.5f, 0.33333333f, 0.2f, 0});
  // Not at 0, where an angle has no gradient; the gradient of infinite ones is NaN, as PyTorch's.
  const Floats ends = {0, -0.0f, kInfinity, -kInfinity, kInfinity, 1, 1e-40f, 3e38f, NAN};
  const Floats heights = {0, 0, kInfinity, 1, 1e38f, kInfinity, 1e-40f, 3e38f, 1};
  const Floats of_ends = Of({9}, ends, angle(heights)).y;
  ExpectNear({of_ends.begin(), of_ends.end() - 1},
             {0, 3.14159265f, 0.78539816f, 3.14159265f, 0, 1.57079633f, 0.78539816f, 0.78539816f});
  EXPECT_TRUE(std::isnan(of_ends.back()));
  Expect(Of({3}, {kInfinity, -kInfinity, 0}, [](Eager&, Var v) { return atan(v); }),
         {1.57079633f, -1.57079633f, 0}, {0, 0, 1});
}

TEST(EdgeValues, ElementaryFunctionsNear0AndFarAway) {
  const Floats small = {1e-6f, -1e-6f, 0};
  for (const auto function : {asin, sinh, asinh, atanh, tan}) {
    Expect(Of({3}, small, [&](Eager&, Var x) { return function(x) * 1e6; }), {1, -1, 0},
           {1e6f, 1e6f, 1e6f});
  }
  ExpectNear(Of({2}, {1e18f, -30}, [](Eager&, Var x) { return asinh(x); }).y,
             {42.139679f, -4.0946222f});
  ExpectNear(Of({2}, {30, -30}, [](Eager&, Var x) { return sinh(x) * 1e-12; }).y,
             {5.3432373f, -5.3432373f});
  ExpectNear(Of({2}, {1, -1}, [](Eager&, Var x) { return asin(x); }).y, {1.5707963f, -1.5707963f});
  ExpectNear(Of({3}, {10, -3, 0.5f}, [](Eager&, Var x) { return exp2(x); }).y,
             {1024, 0.125f, 1.4142136f});
}

TEST(EdgeValues, ProductsWithZeros) {
  Expect(Of({3}, {0, 2, 3}, [](Eager&, Var x) { return prod(x); }), {0}, {6, 0, 0});
  Expect(Of({3}, {0, 0, 3}, [](Eager&, Var x) { return prod(x); }), {0}, {0, 0, 0});
  Expect(Of({3}, {2, 0, 3}, [](Eager&, Var x) { return cumprod(x, 0); }), {2, 0, 0}, {1, 8, 0});
  EXPECT_EQ(Of({2}, {kInfinity, 2}, [](Eager&, Var x) { return cumprod(x, 0); }).y,
            (Floats{kInfinity, kInfinity}));
}

TEST(EdgeValues, TextsWithoutAPath) {
  const auto of = [](bool zero_infinity) -> Function {
    return [=](Eager& eager, Var x) {
      // Two equal labels take three steps.
      const Var targets = eager.i64({2, 2}, {1, 1, 1, 0});
      return ctc_loss(x, targets, eager.i64({2}, {2, 2}), eager.i64({2}, {2, 1}),
                      {0, zero_infinity, Reduction::kNone});
    };
  };
  const float half = std::log(0.5f);
  const Floats halves(8, half);
  Expect(Of({2, 2, 2}, halves, of(true)), {0, 0.28768207f},
         {0, 0, 0, 0, -0.33333333f, -0.66666667f, -0.33333333f, -0.66666667f});
  EXPECT_EQ(Of({2, 2, 2}, halves, of(false)).y[0], kInfinity);
  EXPECT_TRUE(std::isnan(Of({2, 2, 2}, halves, of(false)).dx[0]));
}

TEST(EdgeValues, PointsOutsideOfAnImage) {
  const auto at = [](const GridSampleOptions& options) -> Function {
    return [=](Eager& eager, Var x) {
      const Var grid = eager.f32({1, 1, 3, 2}, {-1, -1, 9, 0, -9, 9});
      return flatten(grid_sample(x, grid, options));
    };
  };
  const Floats image = {1, 2, 3, 4};
  Expect(Of({1, 1, 2, 2}, image, at({})), {0.25f, 0, 0}, {0.25f, 0, 0, 0});
  Expect(Of({1, 1, 2, 2}, image, at({Interpolation::kBilinear, true})), {1, 3, 3},
         {1, 0.5f, 1, 0.5f});
}

TEST(EdgeValues, RowsThatDoNotCount) {
  const auto of = [](Reduction reduction) -> Function {
    return [=](Eager& eager, Var x) {
      return cross_entropy(x, eager.i64({2}, {-100, 1}), {.reduction = reduction});
    };
  };
  const Floats logits = {-kInfinity, 0, 0, 0};
  Expect(Of({2, 2}, logits, of(Reduction::kMean)), {0.69314718f}, {0, 0, 0.5f, -0.5f});
  Expect(Of({2, 2}, logits, of(Reduction::kNone)), {0, 0.69314718f}, {0, 0, 0.5f, -0.5f});
  const Floats bad = {NAN, 0, 0, 0};
  ExpectNear(Of({2, 2}, bad, of(Reduction::kMean)).y, {0.69314718f});
}

TEST(EdgeValues, SmoothLossOfPaddedLogits) {
  const auto of = [](int64_t multiple) -> Function {
    return [=](Eager& eager, Var x) {
      const Var weight = eager.f32({3, 2}, {1, 2, 0.5f, -1, 0, 1});
      const Var logits = padded_logits(x, weight, multiple);
      EXPECT_EQ(logits.dim(-1), multiple == 1 ? 3 : 4);
      return cross_entropy(logits, eager.i64({2}, {2, 0}), {.label_smoothing = 0.2});
    };
  };
  const Floats x = {1, -1, 0.5f, 2};
  const Outcome whole = Of({2, 2}, x, of(1));
  Expect(Of({2, 2}, x, of(4)), whole.y, whole.dx);
}

TEST(EdgeValues, PowersOfZero) {
  Expect(Of({2}, {0, 2}, [](Eager&, Var x) { return pow(x, 0.0); }), {1, 1}, {0, 0});
  const auto to_the = [](Eager& eager, Var x) { return pow(x, eager.f32({3}, {0, 2, 0})); };
  Expect(Of({3}, {0, 0, 2}, to_the), {1, 0, 1}, {0, 0, 0});
  const auto of_base = [](Eager& eager, Var x) { return pow(eager.f32({3}, {0, 0, 2}), x); };
  Expect(Of({3}, {0, 2, 0}, of_base), {1, 0, 1}, {0, 0, 0.69314718f});
}

// It gives back rows and columns at the end that the padding takes off.
TEST(EdgeValues, OutputPaddingBelowTheDilation) {
  for (const int64_t stride : {1, 2}) {
    SCOPED_TRACE(stride);
    const ConvOptions whole = {.stride = stride, .dilation = 3};
    const ConvOptions cut = {.stride = stride, .padding = 2, .dilation = 3};
    const auto of = [&](const ConvOptions& options, int64_t output_padding) -> Function {
      return [=](Eager& eager, Var x) {
        const Var weight = eager.f32({1, 1, 2, 2}, {1, 2, -3, 4});
        const Var y = conv_transpose2d(x, weight, options, output_padding);
        if (options.padding.height > 0) return y;
        const int64_t size = y.dim(2) - 2;
        return slice(slice(y, 2, 2, 2 + size), 3, 2, 2 + size);
      };
    };
    const Floats x = {1, 2, 3, 4};
    const Outcome want = Of({1, 1, 2, 2}, x, of(whole, 0));
    const Outcome got = Of({1, 1, 2, 2}, x, of(cut, 2));
    EXPECT_EQ(got.y, want.y);
    EXPECT_EQ(got.dx, want.dx);
  }
}

}  // namespace
}  // namespace zg
