#include "framework/nn/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "framework/nn/dims.h"
#include "framework/nn/extremes.h"
#include "framework/nn/functions.h"
#include "framework/nn/reductions.h"
#include "framework/nn/shapes.h"

namespace zg {

using nn::Caller;
using nn::Checked;

namespace {

ir::Attributes AttributesOf(const ConvOptions& options) {
  return {{"stride", options.stride.dims()},
          {"padding", options.padding.dims()},
          {"dilation", options.dilation.dims()},
          {"groups", options.groups}};
}

ConvOptions InOneRow(const Conv1dOptions& options) {
  return {{1, options.stride}, {0, options.padding}, {1, options.dilation}, options.groups};
}

// Calls f with the signal as images of one row.
template <typename F>
Var WithRows(const char* function, Var x, const F& f) {
  return Checked(function, x, [&]() -> StatusOr<Var> {
    if (x.shape().num_dims() != 3) {
      return InvalidArgument("{}: expected the dims (samples, channels, length)",
                             Caller(function, x));
    }
    const Var y = f(unsqueeze(x, 2));
    return y.empty() ? y : squeeze(y, 2);
  });
}

// (O, C, K) -> (O, C, 1, K)
Var InOneRow(const char* function, Var weight) {
  return Checked(function, weight, [&]() -> StatusOr<Var> {
    if (weight.shape().num_dims() == 3) return unsqueeze(weight, 2);
    return InvalidArgument("{}: expected the dims (output channels, channels, window)",
                           Caller(function, weight));
  });
}

Status CheckTransposed(Var x, Var weight, const ConvOptions& options, Size2 output_padding) {
  const std::string caller = Caller("conv_transpose2d", x);
  const Shape& w = weight.shape();
  if (x.shape().num_dims() != 4 || w.num_dims() != 4) {
    return InvalidArgument("{} with a weight {}: expected 4 dims of both", caller, w.ToString());
  }
  if (w.dim(0) != x.dim(1) || options.groups < 1 || x.dim(1) % options.groups != 0) {
    return InvalidArgument(
        "{}: got the weight {} and {} groups, expected one whose first dim is the {} channels of x, "
        "and groups that divide them",
        caller, w.ToString(), options.groups, x.dim(1));
  }
  const Dims stride = options.stride.dims(), dilation = options.dilation.dims(),
             added = output_padding.dims();
  for (int i = 0; i < 2; ++i) {
    if (stride[i] < 1 || dilation[i] < 1) {
      return InvalidArgument(
          "{}: got the stride [{}] and the dilation [{}], expected numbers of at "
          "least 1",
          caller, fmt::join(stride, ","), fmt::join(dilation, ","));
    }
    if (added[i] >= 0 && added[i] < std::max(stride[i], dilation[i])) continue;
    return InvalidArgument(
        "{}: got the output padding [{}], expected numbers of at least 0, less than the stride [{}] "
        "or the dilation [{}]",
        caller, fmt::join(added, ","), fmt::join(stride, ","), fmt::join(dilation, ","));
  }
  return Status::Ok();
}

}  // namespace

Var conv2d(Var x, Var weight, const ConvOptions& options) {
  return nn::append("conv2d", {x, weight}, AttributesOf(options));
}

Var conv2d(Var x, Var weight, Var bias, const ConvOptions& options) {
  return nn::append("conv2d", {x, weight, bias}, AttributesOf(options));
}

Var conv1d(Var x, Var weight, const Conv1dOptions& options) {
  return WithRows("conv1d", x, [&](Var rows) {
    return conv2d(rows, InOneRow("conv1d", weight), InOneRow(options));
  });
}

Var conv1d(Var x, Var weight, Var bias, const Conv1dOptions& options) {
  return WithRows("conv1d", x, [&](Var rows) {
    return conv2d(rows, InOneRow("conv1d", weight), bias, InOneRow(options));
  });
}

Var conv_transpose2d(Var x, Var weight, const ConvOptions& options, Size2 output_padding) {
  return Checked("conv_transpose2d", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::Trace::Of("conv_transpose2d").CheckUsable(weight).WithContext("weight"));
    ZG_RETURN_IF_ERROR(CheckTransposed(x, weight, options, output_padding));
    const Dims stride = options.stride.dims(), padding = options.padding.dims(),
               dilation = options.dilation.dims(), added = output_padding.dims();
    Dims size;
    Var dy = x;
    for (int i = 0; i < 2; ++i) {
      size.push_back((x.dim(2 + i) - 1) * stride[i] - 2 * padding[i] +
                     dilation[i] * (weight.dim(2 + i) - 1) + added[i] + 1);
      // A convolution of this size gives more rows than x has where a stride fits into what is added.
      if (added[i] >= stride[i]) dy = pad(dy, 2 + i, 0, added[i] / stride[i]);
    }
    if (size[0] < 1 || size[1] < 1) {
      return InvalidArgument(
          "{}: its result would have the size [{}], expected numbers of at least 1; give less "
          "padding",
          Caller("conv_transpose2d", x), fmt::join(size, ","));
    }
    ir::Attributes attributes = AttributesOf(options);
    attributes.Set("size", size);
    return nn::append("conv2d_grad_input", {dy, weight}, std::move(attributes));
  });
}

Var conv_transpose2d(Var x, Var weight, Var bias, const ConvOptions& options,
                     Size2 output_padding) {
  const nn::Trace::Function called("conv_transpose2d");
  const Var y = conv_transpose2d(x, weight, options, output_padding);
  return y + reshape(bias, {-1, 1, 1});
}

Var conv_transpose1d(Var x, Var weight, const Conv1dOptions& options, int64_t output_padding) {
  return WithRows("conv_transpose1d", x, [&](Var rows) {
    return conv_transpose2d(rows, InOneRow("conv_transpose1d", weight), InOneRow(options),
                            {0, output_padding});
  });
}

Var conv_transpose1d(Var x, Var weight, Var bias, const Conv1dOptions& options,
                     int64_t output_padding) {
  const nn::Trace::Function called("conv_transpose1d");
  const Var y = conv_transpose1d(x, weight, options, output_padding);
  return y + reshape(bias, {-1, 1});
}

Var pixel_shuffle(Var x, int64_t factor) {
  return Checked("pixel_shuffle", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::ExpectImages("pixel_shuffle", x));
    if (factor < 1 || factor > x.dim(1) || x.dim(1) % (factor * factor) != 0) {
      return InvalidArgument(
          "{}: got the factor {}, expected one whose square divides the {} channels",
          Caller("pixel_shuffle", x), factor, x.dim(1));
    }
    const int64_t channels = x.dim(1) / (factor * factor);
    const Var squares = reshape(x, {x.dim(0), channels, factor, factor, x.dim(2), x.dim(3)});
    return reshape(permute(squares, {0, 1, 4, 2, 5, 3}),
                   {x.dim(0), channels, x.dim(2) * factor, x.dim(3) * factor});
  });
}

Var pixel_unshuffle(Var x, int64_t factor) {
  return Checked("pixel_unshuffle", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::ExpectImages("pixel_unshuffle", x));
    if (factor < 1 || x.dim(2) % factor != 0 || x.dim(3) % factor != 0) {
      return InvalidArgument("{}: got the factor {}, expected one that divides height and width",
                             Caller("pixel_unshuffle", x), factor);
    }
    const int64_t height = x.dim(2) / factor, width = x.dim(3) / factor;
    const Var squares = reshape(x, {x.dim(0), x.dim(1), height, factor, width, factor});
    return reshape(permute(squares, {0, 1, 3, 5, 2, 4}),
                   {x.dim(0), x.dim(1) * factor * factor, height, width});
  });
}

Var channel_shuffle(Var x, int64_t groups) {
  return Checked("channel_shuffle", x, [&]() -> StatusOr<Var> {
    if (x.shape().num_dims() < 2 || groups < 1 || x.dim(1) % groups != 0) {
      return InvalidArgument(
          "{}: got {} groups, expected (samples, channels, ...) and groups of equal "
          "sizes",
          Caller("channel_shuffle", x), groups);
    }
    return flatten(transpose(unflatten(x, 1, {groups, -1}), 1, 2), 1, 2);
  });
}

namespace {

// The number of windows along one dim; 0: the first one does not fit.
int64_t NumWindows(int64_t in, int64_t window, int64_t stride, int64_t padding, bool ceil_mode) {
  const int64_t room = in + (2 * padding - window);  // the difference is at most 0
  if (room < 0) return 0;
  const int64_t whole = room / stride + 1;
  return ceil_mode && room % stride != 0 && whole * stride < in + padding ? whole + 1 : whole;
}

// What is below every number, where the last window reaches beyond the padding.
Var PadForLastWindow(Var x, int64_t dim, int64_t window, int64_t stride, int64_t padding) {
  const int64_t in = x.dim(static_cast<int>(dim));
  const int64_t windows = NumWindows(in, window, stride, padding, /*ceil_mode=*/true);
  const int64_t beyond = (windows - 1) * stride + window - (in + 2 * padding);
  if (windows == 0 || beyond <= 0) return x;
  return pad(x, dim, 0, beyond, -std::numeric_limits<double>::infinity());
}

}  // namespace

Var max_pool2d(Var x, Size2 kernel, const MaxPoolOptions& options) {
  return Checked("max_pool2d", x, [&]() -> StatusOr<Var> {
    const Size2 stride = options.stride.value_or(kernel), dilation = options.dilation;
    Var padded = x;
    if (options.ceil_mode && x.shape().num_dims() == 4 && stride.height > 0 && stride.width > 0) {
      padded = PadForLastWindow(padded, 2, dilation.height * (kernel.height - 1) + 1, stride.height,
                                options.padding.height);
      padded = PadForLastWindow(padded, 3, dilation.width * (kernel.width - 1) + 1, stride.width,
                                options.padding.width);
    }
    return nn::append("max_pool2d", {padded},
                      {{"kernel", kernel.dims()},
                       {"stride", stride.dims()},
                       {"padding", options.padding.dims()},
                       {"dilation", dilation.dims()}});
  });
}

Var avg_pool2d(Var x, Size2 kernel, const AvgPoolOptions& options) {
  return Checked("avg_pool2d", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::ExpectImages("avg_pool2d", x));
    const Size2 stride = options.stride.value_or(kernel);
    if (stride.height < 1 || stride.width < 1) {
      return InvalidArgument("{}: got the stride [{},{}], expected numbers of at least 1",
                             Caller("avg_pool2d", x), stride.height, stride.width);
    }
    const int64_t height = NumWindows(x.dim(2), kernel.height, stride.height,
                                      options.padding.height, options.ceil_mode);
    const int64_t width =
        NumWindows(x.dim(3), kernel.width, stride.width, options.padding.width, options.ceil_mode);
    if (height == 0 || width == 0) {
      return InvalidArgument("{}: got the window [{},{}], expected one within the padded image",
                             Caller("avg_pool2d", x), kernel.height, kernel.width);
    }
    return nn::append("resample2d", {x},
                      {{"method", std::string("average")},
                       {"size", Dims{height, width}},
                       {"kernel", kernel.dims()},
                       {"stride", stride.dims()},
                       {"padding", options.padding.dims()},
                       {"counts_padding", options.count_include_pad}});
  });
}

Var max_pool1d(Var x, int64_t kernel, int64_t stride, int64_t padding) {
  return WithRows("max_pool1d", x, [&](Var rows) {
    return max_pool2d(rows, {1, kernel}, {Size2(1, stride), Size2(0, padding)});
  });
}

Var avg_pool1d(Var x, int64_t kernel, int64_t stride, int64_t padding) {
  return WithRows("avg_pool1d", x, [&](Var rows) {
    return avg_pool2d(rows, {1, kernel}, {Size2(1, stride), Size2(0, padding)});
  });
}

Var adaptive_avg_pool2d(Var x, Size2 size) {
  return Checked("adaptive_avg_pool2d", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::ExpectImages("adaptive_avg_pool2d", x));
    if (size.height == 1 && size.width == 1) return mean(x, {2, 3}, /*keep_dims=*/true);
    return nn::append("resample2d", {x},
                      {{"method", std::string("adaptive")}, {"size", size.dims()}});
  });
}

namespace {

// Along one dim: part i of the result is the maximum of elements i n / size to (i + 1) n / size, rounded
// down and up.
Var AdaptiveMax(Var x, int64_t dim, int64_t size) {
  const int64_t length = x.dim(static_cast<int>(dim));
  std::vector<Var> parts;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t begin = i * length / size, end = ((i + 1) * length + size - 1) / size;
    parts.push_back(max(slice(x, dim, begin, end), {dim}, /*keep_dims=*/true));
  }
  return concat(parts, dim);
}

}  // namespace

Var adaptive_max_pool2d(Var x, Size2 size) {
  return Checked("adaptive_max_pool2d", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::ExpectImages("adaptive_max_pool2d", x));
    constexpr int64_t kMost = 1 << 16;  // each is a maximum of its own
    if (size.height < 1 || size.width < 1 || size.height > kMost || size.width > kMost) {
      return InvalidArgument("{}: got the size [{},{}], expected numbers from 1 to {}",
                             Caller("adaptive_max_pool2d", x), size.height, size.width, kMost);
    }
    if (x.dim(2) % size.height == 0 && x.dim(3) % size.width == 0) {  // windows of one size
      return max_pool2d(x, {x.dim(2) / size.height, x.dim(3) / size.width});
    }
    return AdaptiveMax(AdaptiveMax(x, 3, size.width), 2, size.height);
  });
}

Var adaptive_avg_pool1d(Var x, int64_t size) {
  return WithRows("adaptive_avg_pool1d", x, [&](Var rows) {
    return adaptive_avg_pool2d(rows, {1, size});
  });
}

Var interpolate(Var x, Size2 size, Interpolation mode, bool align_corners) {
  const nn::Trace::Function called("interpolate");
  if (align_corners && mode == Interpolation::kNearest) {
    return nn::Trace::Of("interpolate")
        .Fail(InvalidArgument(
            "interpolate: got align_corners with nearest elements, expected it with "
            "bilinear or bicubic interpolation only"));
  }
  const char* const method = mode == Interpolation::kNearest    ? "nearest"
                             : mode == Interpolation::kBilinear ? "linear"
                                                                : "cubic";
  return nn::append(
      "resample2d", {x},
      {{"method", std::string(method)}, {"size", size.dims()}, {"align_corners", align_corners}});
}

Var interpolate1d(Var x, int64_t size, Interpolation mode, bool align_corners) {
  return WithRows("interpolate1d", x, [&](Var rows) {
    return interpolate(rows, {1, size}, mode, align_corners);
  });
}

BatchNormed batch_norm(Var x, Var gamma, Var beta, double epsilon) {
  if (!x.empty() && x.shape().num_dims() >= 2 && x.shape().num_elements() == x.dim(1)) {
    nn::Trace::Of("batch_norm")
        .Fail(
            InvalidArgument("{}: got one element per channel, which has no variance, expected more",
                            Caller("batch_norm", x)));
    return {};
  }
  const std::vector<Var> outputs =
      nn::append_all("batch_norm", {x, gamma, beta}, {{"epsilon", epsilon}});
  if (outputs.empty()) return {};
  return {outputs[0], outputs[1], outputs[2]};
}

}  // namespace zg
