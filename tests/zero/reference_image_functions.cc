#include "tests/zero/reference_functions.h"

namespace zg {
namespace {

Var Image(Var a) { return reshape(a, {1, 2, 3, 4}); }

}  // namespace

const std::map<std::string, Function>& ImageFunctions() {
  static const auto* const functions = new std::map<std::string, Function>{
      {"conv1d", [](Var a, Var b) { return conv1d(a, b, {.padding = 1}); }},
      {"conv1d_strided",
       [](Var a, Var b) { return conv1d(a, b, {.stride = 2, .padding = 1, .dilation = 2}); }},
      {"conv2d",
       [](Var a, Var b) {
         return conv2d(Image(a), b, {.stride = {1, 2}, .padding = {1, 0}});
       }},
      {"conv2d_dilated",
       [](Var a, Var b) {
         return conv2d(Image(a), b, {.padding = 2, .dilation = {2, 3}});
       }},
      {"conv2d_groups",
       [](Var a, Var b) {
         return conv2d(reshape(a, {2, 3, 2, 2}), b, {.padding = 1, .groups = 3});
       }},
      {"conv2d_bias",
       [](Var a, Var b) {
         return conv2d(Image(a), reshape(a, {6, 2, 2, 1}), b);
       }},
      {"conv_transpose2d",
       [](Var a, Var b) {
         return conv_transpose2d(Image(a), b,
                                 {.stride = {2, 3}, .padding = {0, 1}, .dilation = {2, 1}}, {1, 2});
       }},
      {"conv_transpose2d_groups",
       [](Var a, Var b) {
         return conv_transpose2d(reshape(a, {2, 3, 2, 2}), b, {.groups = 3});
       }},
      {"max_pool1d", [](Var a, Var b) { return max_pool1d(a, 3, 2, 1) * b; }},
      {"max_pool2d",
       [](Var a, Var b) {
         return max_pool2d(Image(a), {2, 3}, {.stride = 1, .padding = 1}) * b;
       }},
      {"avg_pool1d", [](Var a, Var b) { return avg_pool1d(a, 3, 2, 1) * b; }},
      {"avg_pool2d",
       [](Var a, Var b) {
         return avg_pool2d(Image(a), {3, 2}, {.stride = Size2(1, 2), .padding = {1, 0}}) * b;
       }},
      {"avg_pool2d_inside",
       [](Var a, Var b) {
         return avg_pool2d(Image(a), 2, {.padding = 1, .count_include_pad = false}) * b;
       }},
      {"max_pool2d_ceil",
       [](Var a, Var b) {
         return max_pool2d(Image(a), {2, 3}, {.stride = 2, .padding = {0, 1}, .ceil_mode = true}) *
                b;
       }},
      {"avg_pool2d_ceil",
       [](Var a, Var b) {
         return avg_pool2d(Image(a), {2, 3}, {.stride = 2, .padding = {0, 1}, .ceil_mode = true}) *
                b;
       }},
      {"avg_pool2d_ceil_inside",
       [](Var a, Var b) {
         const AvgPoolOptions options = {
             .stride = 2, .padding = {0, 1}, .count_include_pad = false, .ceil_mode = true};
         return avg_pool2d(Image(a), {2, 3}, options) * b;
       }},
      {"adaptive_avg_pool2d",
       [](Var a, Var b) {
         return adaptive_avg_pool2d(Image(a), {2, 3}) * b;
       }},
      {"adaptive_avg_pool2d_one",
       [](Var a, Var b) { return adaptive_avg_pool2d(Image(a), 1) * b; }},
      {"interpolate_nearest",
       [](Var a, Var b) {
         return interpolate(Image(a), {5, 7}) * b;
       }},
      {"interpolate_bilinear",
       [](Var a, Var b) {
         return interpolate(Image(a), {2, 9}, Interpolation::kBilinear) * b;
       }},
      {"interpolate_corners",
       [](Var a, Var b) {
         return interpolate(Image(a), {5, 7}, Interpolation::kBilinear, true) * b;
       }},
      {"interpolate_bicubic",
       [](Var a, Var b) {
         return interpolate(Image(a), {2, 9}, Interpolation::kBicubic) * b;
       }},
      {"interpolate_bicubic_corners",
       [](Var a, Var b) {
         return interpolate(Image(a), {5, 7}, Interpolation::kBicubic, true) * b;
       }},
      {"batch_norm", [](Var a, Var b) { return batch_norm(a, b, b * 0.0).y; }},
      {"batch_norm_images",
       [](Var a, Var b) {
         return batch_norm(reshape(a, {3, 2, 2, 2}), b, b * b, 0.1).y;
       }},
      {"conv_transpose1d",
       [](Var a, Var b) { return conv_transpose1d(a, b, {.stride = 2, .padding = 1}, 1); }},
      {"conv_transpose1d_bias",
       [](Var a, Var b) {
         return conv_transpose1d(reshape(a, {1, 6, 4}), reshape(a, {6, 2, 2}), b, {.groups = 3});
       }},
      {"pixel_shuffle",
       [](Var a, Var b) {
         return pixel_shuffle(reshape(a, {1, 4, 2, 3}), 2) * b;
       }},
      {"pixel_unshuffle",
       [](Var a, Var b) {
         return pixel_unshuffle(reshape(a, {1, 1, 4, 6}), 2) * b;
       }},
      {"unfold",
       [](Var a, Var b) {
         return unfold(Image(a), {2, 3}, {{1, 2}, 1}) * b;
       }},
      {"unfold_dilated",
       [](Var a, Var b) {
         return unfold(Image(a), 2, {1, 0, {2, 1}}) * b;
       }},
      {"fold",
       [](Var a, Var b) {
         return fold(reshape(a, {2, 4, 3}), {3, 4}, 2, {{2, 1}, {1, 0}, {3, 1}}) * b;
       }},
      {"grid_sample", [](Var a, Var b) { return grid_sample(Image(a), b * 0.7); }},
      {"grid_sample_border",
       [](Var a, Var b) {
         return grid_sample(Image(a), b, {Interpolation::kBilinear, /*repeats_border=*/true, true});
       }},
      {"grid_sample_nearest",
       [](Var a, Var b) {
         return grid_sample(Image(a), b * 0.4, {Interpolation::kNearest}) + sum(b);
       }},
      {"affine_grid",
       [](Var a, Var b) {
         return grid_sample(reshape(a, {2, 1, 3, 4}), affine_grid(b, {3, 2}));
       }},
      {"affine_grid_aligned",
       [](Var a, Var b) {
         return affine_grid(b, {2, 3}, /*align_corners=*/true) * sum(a);
       }},
      {"conv3d",
       [](Var a, Var b) {
         return conv3d(reshape(a, {1, 2, 3, 2, 2}), b, {{2, 1, 1}, {1, 0, 1}, {1, 1, 2}});
       }},
      {"conv3d_groups",
       [](Var a, Var b) {
         const Var weight = reshape(a, {4, 1, 3, 2, 1});
         return conv3d(reshape(a, {1, 2, 3, 2, 2}), weight, b, {1, {1, 0, 0}, 1, 2});
       }},
      {"max_pool3d",
       [](Var a, Var b) {
         return max_pool3d(reshape(a, {2, 1, 3, 2, 2}), {2, 2, 1}, {Size3(1), Size3(1, 0, 0)}) * b;
       }},
      {"avg_pool3d",
       [](Var a, Var b) {
         return avg_pool3d(reshape(a, {2, 1, 3, 2, 2}), 2, {Size3(1), Size3(1, 1, 0)}) * b;
       }},
      {"conv_transpose3d",
       [](Var a, Var b) {
         return conv_transpose3d(reshape(a, {1, 2, 3, 2, 2}), b, {{2, 1, 1}, {1, 0, 0}}, {1, 0, 0});
       }},
      {"conv_transpose3d_groups",
       [](Var a, Var b) {
         const Var weight = reshape(a, {2, 1, 3, 2, 2});
         return conv_transpose3d(reshape(a, {1, 2, 3, 2, 2}), weight, b, {1, 0, {2, 1, 1}, 2});
       }},
  };
  return *functions;
}

}  // namespace zg
