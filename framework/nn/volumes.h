// Functions of Vars for volumes and videos x (N, C, D, H, W): N samples, C channels. Names and meaning
// are PyTorch's. Arguments for depth, height and width are one number, or {depth, height, width}. Made
// of the functions for images (images.h).
#pragma once

#include <cstdint>
#include <optional>

#include "framework/nn/images.h"
#include "framework/nn/var.h"

namespace zg {

// A number for depth, one for height and one for width.
struct Size3 {
  Size3(int64_t all) : depth(all), height(all), width(all) {}  // NOLINT: implicit, as in Size2
  Size3(int64_t of_depth, int64_t of_height, int64_t of_width)
      : depth(of_depth), height(of_height), width(of_width) {}
  Size2 plane() const { return {height, width}; }

  int64_t depth;
  int64_t height;
  int64_t width;
};

using Conv3dOptions = ConvolutionOptions<Size3>;

// weight (O, C / groups, KD, KH, KW), bias (O) -> (N, O, OD, OH, OW), with sizes as in conv2d. The sum
// of KD convolutions of planes.
Var conv3d(Var x, Var weight, const Conv3dOptions& options = {});
Var conv3d(Var x, Var weight, Var bias, const Conv3dOptions& options = {});

// The gradient of conv3d with these options for its input: weight (C, O / groups, KD, KH, KW), bias (O);
// sizes and output padding are as in conv_transpose2d.
Var conv_transpose3d(Var x, Var weight, const Conv3dOptions& options = {},
                     Size3 output_padding = 0);
Var conv_transpose3d(Var x, Var weight, Var bias, const Conv3dOptions& options = {},
                     Size3 output_padding = 0);

struct Pool3dOptions {
  std::optional<Size3> stride = std::nullopt;  // if not set: the window's size
  Size3 padding = 0;
};

// The largest element, and the average with the zero padding around x, of each window.
Var max_pool3d(Var x, Size3 kernel, const Pool3dOptions& options = {});
Var avg_pool3d(Var x, Size3 kernel, const Pool3dOptions& options = {});

// Resizes x as interpolate does; kBilinear is PyTorch's "trilinear".
Var interpolate3d(Var x, Size3 size, Interpolation mode = Interpolation::kNearest,
                  bool align_corners = false);

}  // namespace zg
