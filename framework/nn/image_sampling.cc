#include "framework/nn/image_sampling.h"

#include <fmt/format.h>

#include <vector>

#include "framework/nn/conditions.h"
#include "framework/nn/constants.h"
#include "framework/nn/dims.h"
#include "framework/nn/functions.h"
#include "framework/nn/indexing.h"
#include "framework/nn/shapes.h"

namespace zg {

using nn::Caller;
using nn::Checked;

namespace {

// Along one dim of an image.
struct WindowDim {
  int64_t kernel;
  int64_t stride;
  int64_t padding;
  int64_t dilation;

  bool is_valid() const { return kernel >= 1 && stride >= 1 && padding >= 0 && dilation >= 1; }
  int64_t Room(int64_t size) const { return size + 2 * padding - dilation * (kernel - 1) - 1; }
  int64_t Count(int64_t size) const { return Room(size) / stride + 1; }
};

struct Windows {
  Windows(Size2 kernel, const UnfoldOptions& options)
      : rows{kernel.height, options.stride.height, options.padding.height, options.dilation.height},
        columns{kernel.width, options.stride.width, options.padding.width, options.dilation.width} {
  }

  Status Check(const std::string& caller, Size2 size) const {
    const bool is_valid = rows.is_valid() && columns.is_valid();
    if (is_valid && rows.Room(size.height) >= 0 && columns.Room(size.width) >= 0) {
      return Status::Ok();
    }
    return InvalidArgument(
        "{}: got windows of [{},{}], stride [{},{}], padding [{},{}] and dilation [{},{}], expected "
        "windows within the padded image",
        caller, rows.kernel, columns.kernel, rows.stride, columns.stride, rows.padding,
        columns.padding, rows.dilation, columns.dilation);
  }

  WindowDim rows;
  WindowDim columns;
};

// The elements number `k` of all windows along a dim of the padded image.
Var ElementsOf(Var x, int64_t dim, const WindowDim& window, int64_t k, int64_t count) {
  const int64_t first = k * window.dilation;
  return slice(x, dim, first, first + (count - 1) * window.stride + 1, window.stride);
}

// Back into a padded image of `size`, with zeros elsewhere.
Var PutBack(Var elements, int64_t dim, const WindowDim& window, int64_t k, int64_t size) {
  const int64_t first = k * window.dilation;
  const int64_t spread = (elements.dim(static_cast<int>(dim)) - 1) * window.stride + 1;
  return nn::append("pad", {elements},
                    {{"dim", dim},
                     {"before", first},
                     {"after", size + 2 * window.padding - first - spread},
                     {"step", window.stride}});
}

// From [-1, 1] to pixels, whose centres are whole numbers.
Var PixelOf(Var coordinate, int64_t size, const GridSampleOptions& options) {
  const auto n = static_cast<double>(size);
  const Var pixel = options.align_corners ? (coordinate + 1.0) * ((n - 1.0) / 2.0)
                                          : (coordinate + 1.0) * (n / 2.0) - 0.5;
  return options.repeats_border ? hardtanh(pixel, 0.0, n - 1.0) : pixel;
}

// Reads images (N, C, H, W) at whole pixels.
class PixelReader {
 public:
  explicit PixelReader(Var x)
      : pixels_(flatten(x, 2)), height_(x.dim(2)), width_(x.dim(3)), channels_(x.dim(1)) {}

  // The pixels times `weight`; zeros outside of the image. Rows, columns and weight: (N, OH, OW).
  Var At(Var row, Var column, Var weight) const {
    const auto last_row = static_cast<double>(height_ - 1);
    const auto last_column = static_cast<double>(width_ - 1);
    const Var is_inside =
        (row >= 0.0) & (row <= last_row) & (column >= 0.0) & (column <= last_column);
    const Var place = to(clamp(row, 0.0, last_row), DType::kI64) * static_cast<double>(width_) +
                      to(clamp(column, 0.0, last_column), DType::kI64);
    const Var index = expand(unsqueeze(flatten(place, 1), 1), {-1, channels_, -1});
    const Var share = unsqueeze(flatten(where(is_inside, weight, 0.0), 1), 1);
    return gather(pixels_, 2, index) * share;
  }

 private:
  const Var pixels_;  // (N, C, H W)
  const int64_t height_;
  const int64_t width_;
  const int64_t channels_;
};

// f32 (size): the coordinates of pixels, between -1 and 1.
Var Coordinates(int64_t size, bool align_corners) {
  const double last = align_corners ? 1.0 : 1.0 - 1.0 / static_cast<double>(size);
  return size == 1 ? zeros({1}) : linspace(-last, last, size);
}

}  // namespace

Var unfold(Var x, Size2 kernel, const UnfoldOptions& options) {
  return Checked("unfold", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::ExpectImages("unfold", x));
    const Windows windows(kernel, options);
    ZG_RETURN_IF_ERROR(windows.Check(Caller("unfold", x), {x.dim(2), x.dim(3)}));
    const int64_t height = windows.rows.Count(x.dim(2)), width = windows.columns.Count(x.dim(3));
    const Var padded = pad(pad(x, 2, windows.rows.padding, windows.rows.padding), 3,
                           windows.columns.padding, windows.columns.padding);
    std::vector<Var> elements;
    for (int64_t i = 0; i < kernel.height; ++i) {
      const Var rows = ElementsOf(padded, 2, windows.rows, i, height);
      for (int64_t j = 0; j < kernel.width; ++j) {
        elements.push_back(ElementsOf(rows, 3, windows.columns, j, width));
      }
    }
    return reshape(stack(elements, 2),
                   {x.dim(0), x.dim(1) * kernel.height * kernel.width, height * width});
  });
}

Var fold(Var windows, Size2 size, Size2 kernel, const UnfoldOptions& options) {
  return Checked("fold", windows, [&]() -> StatusOr<Var> {
    const Windows of(kernel, options);
    ZG_RETURN_IF_ERROR(of.Check(Caller("fold", windows), size));
    const int64_t height = of.rows.Count(size.height), width = of.columns.Count(size.width);
    const int64_t elements = kernel.height * kernel.width;
    if (windows.shape().num_dims() != 3 || windows.dim(1) % elements != 0 ||
        windows.dim(2) != height * width) {
      return InvalidArgument("{}: expected (samples, channels times {}, {} windows)",
                             Caller("fold", windows), elements, height * width);
    }
    const int64_t channels = windows.dim(1) / elements;
    const Var by_element = reshape(windows, {windows.dim(0), channels, elements, height, width});
    Var sum;
    for (int64_t i = 0; i < kernel.height; ++i) {
      Var rows;
      for (int64_t j = 0; j < kernel.width; ++j) {
        const Var part =
            PutBack(select(by_element, 2, i * kernel.width + j), 3, of.columns, j, size.width);
        rows = j == 0 ? part : rows + part;
      }
      const Var part = PutBack(rows, 2, of.rows, i, size.height);
      sum = i == 0 ? part : sum + part;
    }
    const Var cut = slice(sum, 2, of.rows.padding, of.rows.padding + size.height);
    return slice(cut, 3, of.columns.padding, of.columns.padding + size.width);
  });
}

Var grid_sample(Var x, Var grid, const GridSampleOptions& options) {
  return Checked("grid_sample", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(
        nn::Trace::Of("grid_sample").CheckUsable(grid).WithContext("grid_sample: grid"));
    ZG_RETURN_IF_ERROR(nn::ExpectImages("grid_sample", x));
    const Shape& points = grid.shape();
    if (points.num_dims() != 4 || points.dim(0) != x.dim(0) || points.dim(3) != 2) {
      return InvalidArgument("{}: got the grid {}, expected ({}, height, width, 2)",
                             Caller("grid_sample", x), points.ToString(), x.dim(0));
    }
    if (options.mode == Interpolation::kBicubic) {
      return InvalidArgument("{}: got bicubic interpolation, expected nearest or bilinear",
                             Caller("grid_sample", x));
    }
    const Var column = PixelOf(select(grid, 3, 0), x.dim(3), options);
    const Var row = PixelOf(select(grid, 3, 1), x.dim(2), options);
    const PixelReader image(x);
    Var y;
    if (options.mode == Interpolation::kNearest) {
      y = image.At(stop_gradient(round(row)), stop_gradient(round(column)), ones_like(row));
    } else {
      const Var above = stop_gradient(floor(row)), left = stop_gradient(floor(column));
      const Var down = row - above, right = column - left;
      const Var of_upper = image.At(above, left, (1.0 - down) * (1.0 - right)) +
                           image.At(above, left + 1.0, (1.0 - down) * right);
      const Var of_lower = image.At(above + 1.0, left, down * (1.0 - right)) +
                           image.At(above + 1.0, left + 1.0, down * right);
      y = of_upper + of_lower;
    }
    return reshape(y, {x.dim(0), x.dim(1), points.dim(1), points.dim(2)});
  });
}

Var affine_grid(Var theta, Size2 size, bool align_corners) {
  return Checked("affine_grid", theta, [&]() -> StatusOr<Var> {
    const Shape& shape = theta.shape();
    if (shape.num_dims() != 3 || shape.dim(1) != 2 || shape.dim(2) != 3) {
      return InvalidArgument("{}: expected the dims (samples, 2, 3)", Caller("affine_grid", theta));
    }
    if (size.height < 1 || size.width < 1) {
      return InvalidArgument("{}: got the size [{},{}], expected numbers of at least 1",
                             Caller("affine_grid", theta), size.height, size.width);
    }
    const auto factor = [&](int64_t i) {
      return reshape(select(theta, 2, i), {theta.dim(0), 1, 1, 2});
    };
    const Var x = reshape(Coordinates(size.width, align_corners), {1, 1, size.width, 1});
    const Var y = reshape(Coordinates(size.height, align_corners), {1, size.height, 1, 1});
    return factor(0) * x + factor(1) * y + factor(2);
  });
}

}  // namespace zg
