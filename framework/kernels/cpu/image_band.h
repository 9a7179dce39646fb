// Bands of images that are read through windows, as the sums of depthwise convolutions are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "framework/kernels/conv_shape.h"
#include "framework/kernels/cpu/planes_in_lanes.h"

namespace zg {

// What a band of an image may take in the second-level cache.
inline constexpr int64_t kBandBytes = 128 << 10;

// One dim of images that are read through windows: source pixel i lies at i * step + shift in a row of
// `size`, if that is within it, with zeros in the other places. Result pixel p reads the places
// p * stride + tap of each tap.
struct WindowAxis {
  int64_t source;
  int64_t result;
  int64_t step;
  int64_t shift;
  int64_t size;
  int64_t stride;
  std::vector<int64_t> taps = {};

  int64_t extent() const { return 1 + *std::max_element(taps.begin(), taps.end()); }
  // Whether this source pixel lies within the row; whether all do.
  bool Holds(int64_t i) const { return i * step + shift >= 0 && i * step + shift < size; }
  bool IsInside() const { return Holds(0) && Holds(source - 1); }
};

// From x to y.
inline WindowAxis ForwardAxis(const ConvShape& shape, int dim) {
  const int64_t padding = shape.padding[dim];
  WindowAxis axis = {shape.in[dim],    shape.out[dim], 1, padding, shape.in[dim] + 2 * padding,
                     shape.stride[dim]};
  for (int64_t k = 0; k < shape.kernel[dim]; ++k) axis.taps.push_back(k * shape.dilation[dim]);
  return axis;
}

// From dy to dx: the windows of a pixel begin before it.
inline WindowAxis GradInputAxis(const ConvShape& shape, int dim) {
  const int64_t last = (shape.kernel[dim] - 1) * shape.dilation[dim];
  WindowAxis axis = {shape.out[dim],       shape.in[dim],
                     shape.stride[dim],    last - shape.padding[dim],
                     shape.in[dim] + last, 1};
  for (int64_t k = 0; k < shape.kernel[dim]; ++k) {
    axis.taps.push_back(last - k * shape.dilation[dim]);
  }
  return axis;
}

// The pixels of an image, row by row, in a layout where rows do not follow each other closely.
class PixelWalk {
 public:
  struct Steps {
    int64_t width;
    int64_t column;
    int64_t row;
  };

  // Begins at a pixel.
  ZG_INLINE PixelWalk(const Steps& steps, int64_t pixel)
      : steps_(steps),
        column_(pixel % steps.width),
        row_(pixel / steps.width * steps.row),
        offset_(row_ + column_ * steps.column) {}

  ZG_INLINE int64_t column() const { return column_; }
  ZG_INLINE int64_t offset() const { return offset_; }
  ZG_INLINE void Next() {
    offset_ += steps_.column;
    if (++column_ == steps_.width) {
      column_ = 0;
      offset_ = row_ += steps_.row;
    }
  }

 private:
  const Steps steps_;
  int64_t column_;
  int64_t row_;
  int64_t offset_;
};

// A band of rows of sixteen planes in f32, with the zeros around and between their pixels: a vector for
// each place.
class ImageBand {
 public:
  // An image of one row is read as one column, which can be cut into bands.
  ImageBand(const WindowAxis& rows, const WindowAxis& columns)
      : rows_(IsOneRow(rows) ? columns : rows), columns_(IsOneRow(rows) ? rows : columns) {
    const int64_t fitting = kBandBytes / (row_floats() * static_cast<int64_t>(sizeof(float)));
    result_rows_ =
        std::clamp<int64_t>((fitting - rows_.extent()) / rows_.stride + 1, 1, rows_.result);
    for (const int64_t row : rows_.taps) {
      for (const int64_t column : columns_.taps) {
        offsets_.push_back(row * row_floats() + column * kLanes);
      }
    }
  }

  int64_t result_rows() const { return result_rows_; }  // that are computed from a band
  int64_t num_result_rows() const { return rows_.result; }
  int64_t result_columns() const { return columns_.result; }
  int64_t source_pixels() const { return rows_.source * columns_.source; }
  int64_t result_pixels() const { return rows_.result * columns_.result; }
  int64_t floats() const {
    return ((result_rows_ - 1) * rows_.stride + rows_.extent()) * row_floats();
  }
  const std::vector<int64_t>& offsets() const { return offsets_; }  // of the taps

  // Reads what result rows [first, end) need; a band at a time, from the first one on. The places
  // between the pixels of a row stay as they are.
  template <typename T>
  ZG_INLINE void Load(const Planes<const T>& planes, int64_t first, int64_t end,
                      float* band) const {
    const int64_t band_place = first * rows_.stride;
    // The last band read the first rows, too.
    const int64_t kept = first == 0 ? 0 : std::max<int64_t>(0, rows_.extent() - rows_.stride);
    if (kept > 0) {
      std::memmove(band, band + result_rows_ * rows_.stride * row_floats(),
                   kept * row_floats() * sizeof(float));
    }
    const int64_t begin_place = band_place + kept;
    const int64_t end_place = (end - 1) * rows_.stride + rows_.extent();
    const int64_t begin_row = RowAt(begin_place), end_row = RowAt(end_place);
    const auto clear = [&](int64_t from, int64_t to) {
      std::fill(band + (std::clamp(from, begin_place, end_place) - band_place) * row_floats(),
                band + (std::clamp(to, begin_place, end_place) - band_place) * row_floats(), 0.0f);
    };
    clear(begin_place, PlaceOf(begin_row));
    for (int64_t row = begin_row; row < end_row && rows_.step > 1; ++row) {
      clear(PlaceOf(row) + 1, PlaceOf(row + 1));
    }
    clear(end_row == begin_row ? begin_place : PlaceOf(end_row - 1) + 1, end_place);
    const int64_t width = columns_.source;
    const bool is_inside = columns_.IsInside();
    const PixelWalk::Steps steps =
        StepsOf(width, is_inside, columns_.step * kLanes, rows_.step * row_floats());
    float* const begin =
        band + (PlaceOf(begin_row) - band_place) * row_floats() + columns_.shift * kLanes;
    ForChunks(
        0, (end_row - begin_row) * width,
        [&](int64_t pixel, int64_t pixels) __attribute__((always_inline)) {
          Lanes vectors[kLanes];
          LoadPixels(planes, begin_row * width + pixel, pixels, vectors);
          PixelWalk walk(steps, pixel);
          for (int64_t i = 0; i < pixels; ++i, walk.Next()) {
            if (is_inside || columns_.Holds(walk.column())) {
              StoreLanes(vectors[i], begin + walk.offset());
            }
          }
        });
  }

  // A single column is as good as a single row, which never ends.
  static PixelWalk::Steps StepsOf(int64_t width, bool is_inside, int64_t column, int64_t row) {
    if (width == 1 && is_inside) return {std::numeric_limits<int64_t>::max(), row, 0};
    return {width, column, row};
  }
  // From the window of a result pixel to its neighbours'.
  PixelWalk::Steps window_steps() const {
    return StepsOf(columns_.result, true, columns_.stride * kLanes, rows_.stride * row_floats());
  }

 private:
  static bool IsOneRow(const WindowAxis& rows) {
    return rows.source == 1 && rows.result == 1 && rows.taps.size() == 1;
  }
  int64_t row_floats() const { return columns_.size * kLanes; }
  int64_t PlaceOf(int64_t row) const { return row * rows_.step + rows_.shift; }
  // The first source row at this place or behind it.
  int64_t RowAt(int64_t place) const {
    const int64_t ahead = std::max<int64_t>(0, place - rows_.shift);
    return std::min((ahead + rows_.step - 1) / rows_.step, rows_.source);
  }

  const WindowAxis rows_;
  const WindowAxis columns_;
  int64_t result_rows_;
  std::vector<int64_t> offsets_;
};

}  // namespace zg
