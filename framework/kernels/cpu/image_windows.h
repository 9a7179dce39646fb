// The positions of the windows of images: tables with which convolutions read zero-padded images as
// matrices (indexed_product.h) that have a column per pixel of the result and a row per channel and
// tap, where a tap is an element of a window.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/kernels/conv_shape.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/half.h"

namespace zg {

// A plane of an image with zeros around it. Its columns i, i + interleave, i + 2 interleave, ...
// are stored side by side, so that windows `interleave` apart are contiguous.
struct PaddedPlane {
  int64_t in[2] = {};      // height and width of the image
  int64_t before[2] = {};  // number of zeros before it
  int64_t size[2] = {};    // total size; may leave out parts of the image that no window reaches
  int64_t interleave = 1;

  int64_t row_floats() const { return interleave * ((size[1] + interleave - 1) / interleave); }
  int64_t floats() const { return size[0] * row_floats(); }
  int64_t OffsetOfColumn(int64_t column) const {
    return column % interleave * (row_floats() / interleave) + column / interleave;
  }
  bool IsImage() const {
    return interleave == 1 && size[0] == in[0] && size[1] == in[1] && before[0] == 0 &&
           before[1] == 0;
  }
};

// Pads `planes` images of `dtype`, one after the other; `out` is in f32.
void PadPlanes(const PaddedPlane& plane, DType dtype, const void* images, int64_t planes,
               float* out);
// Images and planes of bf16.
void PadHalfPlanes(const PaddedPlane& plane, const BFloat16* images, int64_t planes, BFloat16* out);

// The pixels of the result whose windows have the same taps.
struct WindowPhase {
  std::vector<int64_t> taps;     // indices of kernel elements, KH * KW
  std::vector<int64_t> offsets;  // offset of each tap in a padded plane, from the window's position
  std::vector<int64_t> windows;  // the position of each pixel's window
  std::vector<int64_t> pixels;   // the indices of these pixels

  // The windows in planes that lie one behind the other, as a matrix: the offsets of its rows, by
  // channel and tap, and of its columns, by sample and pixel.
  std::vector<int64_t> RowsOf(int64_t channels, int64_t plane_size) const;
  std::vector<int64_t> ColumnsOf(int64_t samples, int64_t sample_size) const;
};

struct ImageWindows {
  PaddedPlane plane;
  std::vector<WindowPhase> phases;  // every pixel of the result is in one of them
  int64_t result_pixels = 0;
};

// From x to y, with a single phase.
ImageWindows ForwardWindows(const ConvShape& shape);
// From dy to dx: a phase for each pixel of a step, because only every stride-th tap reads an
// element of dy.
ImageWindows GradInputWindows(const ConvShape& shape);

}  // namespace zg
