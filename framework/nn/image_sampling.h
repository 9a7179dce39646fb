// Functions of Vars that read images x (N, C, H, W) at windows or points. Names and meaning are
// PyTorch's. Made of smaller functions, so that each part has gradients.
#pragma once

#include <cstdint>

#include "framework/nn/images.h"
#include "framework/nn/var.h"

namespace zg {

struct UnfoldOptions {
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 dilation = 1;
};

// The windows of size `kernel` (im2col): (N, C KH KW, L), with the windows' L positions in row-major
// order.
Var unfold(Var x, Size2 kernel, const UnfoldOptions& options = {});
// Back to images of `size`: elements of several windows are summed (col2im).
Var fold(Var windows, Size2 size, Size2 kernel, const UnfoldOptions& options = {});

struct GridSampleOptions {
  Interpolation mode = Interpolation::kBilinear;  // not bicubic
  // Outside of the image: the nearest pixel of its border, or zeros.
  bool repeats_border = false;
  // -1 and 1 are the centres of the outermost pixels, or their outer edges.
  bool align_corners = false;
};

// x at the points grid (N, OH, OW, 2), each (x, y) with -1 and 1 at the image's edges -> (N, C, OH,
// OW). In mixed precision give points in 16 bits only to small images: bf16 has 8 bits for a coordinate
// (f32_modules keeps a module in f32).
Var grid_sample(Var x, Var grid, const GridSampleOptions& options = {});

// The points of images of `size` after the transformations theta (N, 2, 3): (N, H, W, 2), for
// grid_sample (spatial transformers, arXiv 1506.02025).
Var affine_grid(Var theta, Size2 size, bool align_corners = false);

}  // namespace zg
