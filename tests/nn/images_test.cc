// Functions and modules for images: their result types, their parameters, and their errors.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "framework/nn/nn.h"

namespace zg {
namespace {

using Function = std::function<Var(Var)>;

// The type of the function's result for x f32[2,6,8,9], or the error.
std::string Of(const Function& function) {
  Graph graph("g");
  graph.eval("run", [&](Inputs& in) { return function(in.f32("x", {2, 6, 8, 9})); });
  if (!graph.status().ok()) return graph.status().message();
  return graph.result_type("run", "result")->ToString();
}

std::string Error(const std::string& text) { return "graph g, eval 'run': " + text; }

// The result's type for x f32[2,6,8,9], then "name f32[shape] initializer" of each parameter.
std::string OfModule(nn::Module& module) {
  Graph graph("g");
  graph.eval("run", [&](Inputs& in) { return module(in.f32("x", {2, 6, 8, 9})); });
  if (!graph.status().ok()) return graph.status().message();
  std::string text = graph.result_type("run", "result")->ToString();
  for (const ir::StoredTensor& tensor : graph.ir().tensors()) {
    text += "; " + tensor.name + " " + tensor.type.ToString() + " " + tensor.initializer.ToString();
  }
  return text;
}

TEST(Images, PixelsAndChannels) {
  EXPECT_EQ(Of([](Var x) { return pixel_unshuffle(slice(x, 3, 0, 8), 2); }), "f32[2,24,4,4]");
  EXPECT_EQ(Of([](Var x) { return pixel_shuffle(slice(x, 1, 0, 4), 2); }), "f32[2,1,16,18]");
  EXPECT_EQ(Of([](Var x) { return pixel_shuffle(x, 2); }),
            Error("pixel_shuffle of %x f32[2,6,8,9]: got the factor 2, expected one whose square "
                  "divides the 6 channels"));
  EXPECT_EQ(Of([](Var x) { return pixel_unshuffle(x, 2); }),
            Error("pixel_unshuffle of %x f32[2,6,8,9]: got the factor 2, expected one that divides "
                  "height and width"));
}

TEST(Images, TransposedConvolutionsOfSignals) {
  nn::ConvTranspose1d conv(nullptr, "conv", 6, 4, 3, {.stride = 2, .output_padding = 1});
  EXPECT_EQ(Of([&](Var x) { return conv(flatten(x, 2)); }), "f32[2,4,146]");
  EXPECT_EQ(
      Of([&](Var x) { return conv(x); }),
      Error("conv: conv_transpose1d of %x f32[2,6,8,9]: expected the dims (samples, channels, "
            "length)"));
}

TEST(Images, Convolutions) {
  const nn::Parameter weight(nullptr, "weight", {4, 6, 3, 2}, Initializer::Zeros());
  EXPECT_EQ(Of([&](Var x) { return conv2d(x, weight); }), "f32[2,4,6,8]");
  EXPECT_EQ(Of([&](Var x) {
              return conv2d(x, weight, {.stride = 2, .padding = {1, 0}, .dilation = {1, 3}});
            }),
            "f32[2,4,4,3]");
  EXPECT_EQ(Of([&](Var x) { return conv2d(x, weight, {.groups = 2}); }),
            Error("conv2d: got 6 channels, 4 output channels, weights for 6 and 2 groups, expected "
                  "groups that divide both, and weights for the channels of one: x f32[2,6,8,9], "
                  "weight f32[4,6,3,2]"));
  EXPECT_EQ(Of([&](Var x) { return conv1d(x, weight); }),
            Error("conv1d of %x f32[2,6,8,9]: expected the dims (samples, channels, length)"));
  EXPECT_EQ(Of([&](Var x) { return conv1d(flatten(x, 2), weight); }),
            Error("conv1d of %weight f32[4,6,3,2]: expected the dims (output channels, channels, "
                  "window)"));
  EXPECT_EQ(Of([](Var x) {
              return conv_transpose2d(x, reshape(x, {6, 3, 6, 8}), {.stride = 2});
            }),
            "f32[2,3,20,24]");
  EXPECT_EQ(
      Of([](Var x) { return conv_transpose2d(flatten(x), x); }),
      Error("conv_transpose2d of %reshape f32[864] with a weight [2,6,8,9]: expected 4 dims of "
            "both"));
}

TEST(Images, ErrorsNameTheFunctionThatWasCalled) {
  EXPECT_EQ(Of([](Var x) {
              return conv1d(flatten(x, 2), reshape(x, {32, 3, 9}));
            }),
            Error("conv1d: conv2d: got 6 channels, 32 output channels, weights for 3 and 1 groups, "
                  "expected groups that divide both, and weights for the channels of one: x "
                  "f32[2,6,1,72], weight f32[32,3,1,9]"));
  EXPECT_EQ(Of([](Var x) { return interpolate(flatten(x, 2), 2); }),
            Error("interpolate: resample2d: x has not 4 dims: x f32[2,6,72]"));
  EXPECT_EQ(Of([](Var x) { return max_pool1d(flatten(x, 2), 100, 1); }),
            Error("max_pool1d: max_pool2d: the window has size 100, expected one within the "
                  "padded size 72: x f32[2,6,1,72]"));
}

TEST(Images, TransposedConvolutions) {
  const auto of = [](const Dims& weight, const ConvOptions& options, Size2 output_padding) {
    return Of([&](Var x) {
      Var y = reshape(concat({x, x}, 0), {-1});
      int64_t elements = 1;
      for (const int64_t size : weight) elements *= size;
      y = reshape(slice(y, 0, 0, elements), weight);
      return conv_transpose2d(x, y, options, output_padding);
    });
  };
  EXPECT_EQ(of({6, 3, 2, 2}, {.dilation = 3}, {1, 2}), "f32[2,3,12,14]");
  EXPECT_EQ(of({6, 3, 2, 2}, {.stride = 2, .dilation = 3}, 2), "f32[2,3,20,22]");
  EXPECT_EQ(of({6, 3, 2, 2}, {.stride = 2}, {0, 2}),
            Error("conv_transpose2d of %x f32[2,6,8,9]: got the output padding [0,2], expected "
                  "numbers of at least 0, less than the stride [2,2] or the dilation [1,1]"));
  EXPECT_EQ(of({6, 3, 2, 2}, {}, -1),
            Error("conv_transpose2d of %x f32[2,6,8,9]: got the output padding [-1,-1], expected "
                  "numbers of at least 0, less than the stride [1,1] or the dilation [1,1]"));
  EXPECT_EQ(of({3, 6, 2, 2}, {}, 0),
            Error("conv_transpose2d of %x f32[2,6,8,9]: got the weight [3,6,2,2] and 1 groups, "
                  "expected one whose first dim is the 6 channels of x, and groups that divide "
                  "them"));
  EXPECT_EQ(of({6, 3, 2, 2}, {.groups = 4}, 0),
            Error("conv_transpose2d of %x f32[2,6,8,9]: got the weight [6,3,2,2] and 4 groups, "
                  "expected one whose first dim is the 6 channels of x, and groups that divide "
                  "them"));
  EXPECT_EQ(of({6, 3, 1, 1}, {.padding = {5, 0}}, 0),
            Error("conv_transpose2d of %x f32[2,6,8,9]: its result would have the size [-2,9], "
                  "expected numbers of at least 1; give less padding"));
}

TEST(Images, Pooling) {
  EXPECT_EQ(Of([](Var x) { return max_pool2d(x, 2); }), "f32[2,6,4,4]");
  EXPECT_EQ(Of([](Var x) { return max_pool2d(x, 3, {.stride = 2, .ceil_mode = true}); }),
            "f32[2,6,4,4]");
  EXPECT_EQ(Of([](Var x) { return avg_pool2d(x, 3, {.stride = 2, .ceil_mode = true}); }),
            "f32[2,6,4,4]");
  EXPECT_EQ(Of([](Var x) { return max_pool2d(x, 10, {.ceil_mode = true}); }),
            Error("max_pool2d: the window has size 10, expected one within the padded size 8: x "
                  "f32[2,6,8,9]"));
  EXPECT_EQ(Of([](Var x) { return max_pool2d(x, 3, {.stride = 2, .padding = 1}); }),
            "f32[2,6,4,5]");
  EXPECT_EQ(Of([](Var x) { return avg_pool2d(x, {4, 3}); }), "f32[2,6,2,3]");
  EXPECT_EQ(Of([](Var x) { return avg_pool2d(x, 10); }),
            Error("avg_pool2d of %x f32[2,6,8,9]: got the window [10,10], expected one within the "
                  "padded image"));
  EXPECT_EQ(
      Of([](Var x) { return avg_pool2d(x, 2, {.stride = 0}); }),
      Error("avg_pool2d of %x f32[2,6,8,9]: got the stride [0,0], expected numbers of at least "
            "1"));
  EXPECT_EQ(Of([](Var x) { return adaptive_avg_pool2d(x, {3, 2}); }), "f32[2,6,3,2]");
  EXPECT_EQ(Of([](Var x) { return adaptive_avg_pool2d(x, 1); }), "f32[2,6,1,1]");
  EXPECT_EQ(Of([](Var x) { return adaptive_avg_pool2d(flatten(x), 1); }),
            Error("adaptive_avg_pool2d of %reshape f32[864]: expected the dims (samples, channels, "
                  "height, width)"));
  EXPECT_EQ(Of([](Var x) { return interpolate(x, {3, 20}); }), "f32[2,6,3,20]");
}

TEST(Images, Modules) {
  nn::Conv2d conv(nullptr, "conv", 6, 4, {3, 2}, {.stride = 2, .padding = 1, .groups = 2});
  EXPECT_EQ(OfModule(conv),
            "f32[2,4,4,5]; conv.weight f32[4,3,3,2] uniform(0.23570226039551587); conv.bias f32[4] "
            "uniform(0.23570226039551587)");
  nn::ConvTranspose2d transposed(nullptr, "conv", 6, 4, 2,
                                 {.stride = 2, .has_bias = false, .output_padding = {1, 0}});
  EXPECT_EQ(OfModule(transposed), "f32[2,4,17,18]; conv.weight f32[6,4,2,2] uniform(0.25)");
  nn::MaxPool2d max_pool(nullptr, "pool", 2);
  EXPECT_EQ(OfModule(max_pool), "f32[2,6,4,4]");
  nn::AvgPool2d avg_pool(nullptr, "pool", 2);
  EXPECT_EQ(OfModule(avg_pool), "f32[2,6,4,4]");
  nn::BatchNorm2d norm(nullptr, "norm", 6);
  EXPECT_EQ(
      OfModule(norm),
      "f32[2,6,8,9]; norm.weight f32[6] ones; norm.bias f32[6] zeros; norm.running_mean f32[6] "
      "zeros; norm.running_var f32[6] ones");
  nn::BatchNorm1d signals(nullptr, "norm", 6);
  EXPECT_EQ(OfModule(signals),
            Error("norm: BatchNorm of %x f32[2,6,8,9]: got 4 dims, expected 2 to 3"));
  nn::BatchNorm2d narrow(nullptr, "norm", 5);
  EXPECT_EQ(OfModule(narrow), Error("norm: BatchNorm of %x f32[2,6,8,9]: got 6 channels, which are "
                                    "dim 1, expected 5"));
  nn::AdaptiveAvgPool2d adaptive(nullptr, "pool", 2);
  EXPECT_EQ(OfModule(adaptive), "f32[2,6,2,2]");
}

TEST(Images, Initializers) {
  const Shape weight = {8, 4, 3, 3};
  EXPECT_EQ(nn::kaiming_normal(weight), Initializer::Normal(std::sqrt(2.0 / 36)));
  EXPECT_EQ(nn::kaiming_normal(weight, nn::Fan::kOut), Initializer::Normal(std::sqrt(2.0 / 72)));
  EXPECT_NEAR(nn::kaiming_uniform(weight, nn::Fan::kIn, std::sqrt(5.0)).scale, 1.0 / 6, 1e-15);
  EXPECT_NEAR(nn::xavier_uniform(weight, 2.0).scale, 2 * std::sqrt(6.0 / 108), 1e-15);
  EXPECT_NEAR(nn::xavier_normal(weight).scale, std::sqrt(2.0 / 108), 1e-15);
}

}  // namespace
}  // namespace zg
