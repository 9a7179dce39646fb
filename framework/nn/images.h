// Functions of Vars for images x (N, C, H, W) and signals x (N, C, L): N samples, C channels. Names
// and meaning are PyTorch's. Arguments for height and width are one number, or {height, width}.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/nn/var.h"

namespace zg {

// A number for height and one for width.
struct Size2 {
  Size2(int64_t both) : height(both), width(both) {}  // NOLINT: implicit, so that 3 is {3, 3}
  Size2(int64_t of_height, int64_t of_width) : height(of_height), width(of_width) {}
  std::vector<int64_t> dims() const { return {height, width}; }

  int64_t height;
  int64_t width;
};

// `Size`: one number, or one for each dim.
template <typename Size>
struct ConvolutionOptions {
  Size stride = 1;
  Size padding = 0;  // zeros on each side
  Size dilation = 1;
  int64_t groups = 1;  // splits channels and output channels into as many groups, each processed on
                       // its own
};
using ConvOptions = ConvolutionOptions<Size2>;
using Conv1dOptions = ConvolutionOptions<int64_t>;

// weight (O, C / groups, KH, KW), bias (O) -> (N, O, OH, OW) with
// OH = (H + 2 padding - dilation (KH - 1) - 1) / stride + 1.
Var conv2d(Var x, Var weight, const ConvOptions& options = {});
Var conv2d(Var x, Var weight, Var bias, const ConvOptions& options = {});

// weight (O, C / groups, K), bias (O) -> (N, O, OL).
Var conv1d(Var x, Var weight, const Conv1dOptions& options = {});
Var conv1d(Var x, Var weight, Var bias, const Conv1dOptions& options = {});

// The gradient of conv2d with these options for its input: weight (C, O / groups, KH, KW), bias (O)
// -> (N, O, OH, OW) with
// OH = (H - 1) stride - 2 padding + dilation (KH - 1) + output_padding + 1. The output padding must
// be less than the stride or the dilation.
Var conv_transpose2d(Var x, Var weight, const ConvOptions& options = {}, Size2 output_padding = 0);
Var conv_transpose2d(Var x, Var weight, Var bias, const ConvOptions& options = {},
                     Size2 output_padding = 0);
// The same for signals: weight (C, O / groups, K).
Var conv_transpose1d(Var x, Var weight, const Conv1dOptions& options = {},
                     int64_t output_padding = 0);
Var conv_transpose1d(Var x, Var weight, Var bias, const Conv1dOptions& options = {},
                     int64_t output_padding = 0);

// (N, C r^2, H, W) -> (N, C, H r, W r): r^2 channels become the pixels of a square (arXiv
// 1609.05158); and back.
Var pixel_shuffle(Var x, int64_t factor);
Var pixel_unshuffle(Var x, int64_t factor);
// Channel c of C / groups in group g becomes channel c groups + g (ShuffleNet, arXiv 1707.01083).
Var channel_shuffle(Var x, int64_t groups);

struct MaxPoolOptions {
  std::optional<Size2> stride = std::nullopt;  // if not set: the window's size
  Size2 padding = 0;
  Size2 dilation = 1;
  bool ceil_mode = false;  // a last window that begins inside may reach beyond the padding
};

// The largest element of each window of size `kernel`.
Var max_pool2d(Var x, Size2 kernel, const MaxPoolOptions& options = {});

struct AvgPoolOptions {
  std::optional<Size2> stride = std::nullopt;  // if not set: the window's size
  Size2 padding = 0;
  bool count_include_pad = true;  // averages include the zero padding around x
  bool ceil_mode = false;  // as for MaxPoolOptions; averages are without what is beyond the padding
};

// The average of each window.
Var avg_pool2d(Var x, Size2 kernel, const AvgPoolOptions& options = {});

// The same for signals.
Var max_pool1d(Var x, int64_t kernel, int64_t stride, int64_t padding = 0);
Var avg_pool1d(Var x, int64_t kernel, int64_t stride, int64_t padding = 0);

// Averages over windows that cover x evenly, one for each pixel of an image of `size`.
Var adaptive_avg_pool2d(Var x, Size2 size);
Var adaptive_max_pool2d(Var x, Size2 size);
Var adaptive_avg_pool1d(Var x, int64_t size);

enum class Interpolation { kNearest, kBilinear, kBicubic };
// Resizes x. `align_corners`: the corners of x become the corners of the result (not with nearest
// pixels). PyTorch's mode "area" is adaptive_avg_pool2d.
Var interpolate(Var x, Size2 size, Interpolation mode = Interpolation::kNearest,
                bool align_corners = false);
// The same of x (N, C, L); kBilinear is PyTorch's "linear".
Var interpolate1d(Var x, int64_t size, Interpolation mode = Interpolation::kNearest,
                  bool align_corners = false);

// Every channel of x (N, C, ...) normalised to mean 0 and variance 1 over this micro-batch, then
// scaled by gamma and shifted by beta, both (C). The module that also keeps running statistics is
// in batch_norm.h.
struct BatchNormed {
  Var y;
  Var mean;      // (C)
  Var variance;  // (C), the biased one
};
BatchNormed batch_norm(Var x, Var gamma, Var beta, double epsilon = 1e-5);

}  // namespace zg
