// Functions and modules that read images at windows or points, and those for volumes: their result
// types, their parameters, and their errors.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "framework/nn/nn.h"

namespace zg {
namespace {

using Function = std::function<Var(Var)>;

// The type of the function's result for x f32[shape], or the error.
std::string Of(const Shape& shape, const Function& function) {
  Graph graph("g");
  graph.eval("run", [&](Inputs& in) { return function(in.f32("x", shape)); });
  if (!graph.status().ok()) return graph.status().message();
  return graph.result_type("run", "result")->ToString();
}

std::string Error(const std::string& text) { return "graph g, eval 'run': " + text; }

const Shape kImages = {2, 6, 8, 9};
const Shape kVolumes = {2, 6, 5, 8, 9};

TEST(Sampling, Windows) {
  EXPECT_EQ(Of(kImages, [](Var x) { return unfold(x, {2, 3}); }), "f32[2,36,49]");
  EXPECT_EQ(Of(kImages, [](Var x) { return unfold(x, 3, {2, 1, 2}); }), "f32[2,54,12]");
  EXPECT_EQ(Of(kImages,
               [](Var x) {
                 return unfold(x, {9, 1});
               }),
            Error("unfold of %x f32[2,6,8,9]: got windows of [9,1], stride [1,1], padding [0,0] "
                  "and dilation [1,1], expected windows within the padded image"));
  EXPECT_EQ(Of(kImages, [](Var x) { return unfold(x, 3, {0}); }),
            Error("unfold of %x f32[2,6,8,9]: got windows of [3,3], stride [0,0], padding [0,0] "
                  "and dilation [1,1], expected windows within the padded image"));
  EXPECT_EQ(Of({6, 8, 9}, [](Var x) { return unfold(x, 3); }),
            Error("unfold of %x f32[6,8,9]: expected the dims (samples, channels, height, width)"));
  EXPECT_EQ(Of({2, 36, 49}, [](Var x) { return fold(x, {8, 9}, {2, 3}); }), "f32[2,6,8,9]");
  EXPECT_EQ(Of({2, 36, 48},
               [](Var x) {
                 return fold(x, {8, 9}, {2, 3});
               }),
            Error("fold of %x f32[2,36,48]: expected (samples, channels times 6, 49 windows)"));
  EXPECT_EQ(Of({2, 35, 49},
               [](Var x) {
                 return fold(x, {8, 9}, {2, 3});
               }),
            Error("fold of %x f32[2,35,49]: expected (samples, channels times 6, 49 windows)"));
}

TEST(Sampling, Points) {
  EXPECT_EQ(Of(kImages, [](Var x) { return grid_sample(x, zeros({2, 3, 4, 2})); }), "f32[2,6,3,4]");
  EXPECT_EQ(Of(kImages,
               [](Var x) {
                 return grid_sample(x, zeros({1, 3, 4, 2}));
               }),
            Error("grid_sample of %x f32[2,6,8,9]: got the grid [1,3,4,2], expected (2, height, "
                  "width, 2)"));
  EXPECT_EQ(Of(kImages,
               [](Var x) {
                 return grid_sample(x, zeros({2, 3, 4, 3}));
               }),
            Error("grid_sample of %x f32[2,6,8,9]: got the grid [2,3,4,3], expected (2, height, "
                  "width, 2)"));
  EXPECT_EQ(Of({2, 6},
               [](Var x) {
                 return grid_sample(x, zeros({2, 3, 4, 2}));
               }),
            Error("grid_sample of %x f32[2,6]: expected the dims (samples, channels, height, "
                  "width)"));
  EXPECT_EQ(Of(kImages, [](Var x) { return grid_sample(x, Var()); }),
            Error("grid_sample: grid: the Var is empty; it was never given a value"));
  EXPECT_EQ(Of({2, 2, 3}, [](Var x) { return affine_grid(x, {4, 5}); }), "f32[2,4,5,2]");
  EXPECT_EQ(Of({2, 3, 2},
               [](Var x) {
                 return affine_grid(x, {4, 5});
               }),
            Error("affine_grid of %x f32[2,3,2]: expected the dims (samples, 2, 3)"));
  EXPECT_EQ(Of({2, 2, 3},
               [](Var x) {
                 return affine_grid(x, {0, 5});
               }),
            Error("affine_grid of %x f32[2,2,3]: got the size [0,5], expected numbers of at "
                  "least 1"));
}

TEST(Volumes, Convolutions) {
  const auto of_weight = [](const Shape& weight, const Conv3dOptions& options = {}) {
    return Of(kVolumes, [&](Var x) { return conv3d(x, ones(weight.dims()), options); });
  };
  EXPECT_EQ(of_weight({4, 6, 3, 2, 1}), "f32[2,4,3,7,9]");
  EXPECT_EQ(of_weight({4, 3, 3, 3, 3}, {{2, 1, 2}, {1, 0, 1}, {2, 1, 1}, 2}), "f32[2,4,2,6,5]");
  EXPECT_EQ(of_weight({4, 6, 3, 2}),
            Error("conv3d of %x f32[2,6,5,8,9]: got the weight [4,6,3,2], expected the dims "
                  "(output channels, channels, depth, height, width)"));
  EXPECT_EQ(of_weight({4, 6, 6, 2, 1}),
            Error("conv3d of %x f32[2,6,5,8,9]: got a window of depth 6, expected one within the "
                  "padded volume"));
  EXPECT_EQ(of_weight({4, 6, 3, 2, 1}, {{0, 1, 1}}),
            Error("conv3d of %x f32[2,6,5,8,9]: got stride 0, padding 0 and dilation 1 of the "
                  "depth, expected numbers of at least 1, 0 and 1, and at most 2147483648"));
  EXPECT_EQ(Of(kImages,
               [](Var x) {
                 return conv3d(x, ones({4, 6, 3, 2, 1}));
               }),
            Error("conv3d of %x f32[2,6,8,9]: expected the dims (samples, channels, depth, height, "
                  "width)"));
}

TEST(Volumes, TransposedConvolutions) {
  const auto of = [](const Conv3dOptions& options, Size3 output_padding) {
    return Of(kVolumes, [&](Var x) {
      return conv_transpose3d(x, ones({6, 4, 3, 2, 2}), options, output_padding);
    });
  };
  EXPECT_EQ(of({}, 0), "f32[2,4,7,9,10]");
  EXPECT_EQ(of({2, 1}, {1, 0, 1}), "f32[2,4,10,14,17]");
  EXPECT_EQ(of({2}, {2, 0, 0}),
            Error("conv_transpose3d of %x f32[2,6,5,8,9]: got the output padding 2 of the depth, "
                  "expected at least 0 and less than the stride 2 or the dilation 1"));
  EXPECT_EQ(of({1, {4, 0, 0}}, 0),
            Error("conv_transpose3d of %x f32[2,6,5,8,9]: its result would have the depth -1; "
                  "give less padding"));
  EXPECT_EQ(of({1, {0, 9, 0}}, 0),
            Error("conv_transpose3d: conv_transpose2d of %reshape f32[10,6,8,9]: its result would "
                  "have the size [-9,10], expected numbers of at least 1; give less padding"));
}

TEST(Volumes, Pooling) {
  EXPECT_EQ(Of(kVolumes, [](Var x) { return max_pool3d(x, {2, 3, 2}); }), "f32[2,6,2,2,4]");
  EXPECT_EQ(Of(kVolumes,
               [](Var x) {
                 return avg_pool3d(x, 3, {Size3(1, 2, 2), Size3(1)});
               }),
            "f32[2,6,5,4,5]");
  EXPECT_EQ(Of(kImages, [](Var x) { return max_pool3d(x, 2); }),
            Error("max_pool3d of %x f32[2,6,8,9]: expected the dims (samples, channels, depth, "
                  "height, width)"));
}

TEST(Volumes, Modules) {
  nn::Conv3d conv(nullptr, "conv", 6, 4, {3, 2, 1}, {.groups = 2});
  nn::MaxPool3d max_pool(nullptr, "max_pool", 2);
  nn::AvgPool3d avg_pool(nullptr, "avg_pool", {1, 2, 2});
  nn::BatchNorm3d norm(nullptr, "norm", 4);
  EXPECT_EQ(conv.weight.shape(), Shape({4, 3, 3, 2, 1}));
  EXPECT_EQ(conv.bias->shape(), Shape({4}));
  nn::ConvTranspose3d transposed(nullptr, "transposed", 6, 4, 2, {.stride = 2, .groups = 2});
  EXPECT_EQ(transposed.weight.shape(), Shape({6, 2, 2, 2, 2}));
  EXPECT_EQ(Of(kVolumes, [&](Var x) { return transposed(x); }), "f32[2,4,10,16,18]");
  EXPECT_EQ(Of(kVolumes, [&](Var x) { return avg_pool(max_pool(norm(conv(x)))); }),
            "f32[2,4,1,1,2]");
}

}  // namespace
}  // namespace zg
