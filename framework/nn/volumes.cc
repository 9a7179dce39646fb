#include "framework/nn/volumes.h"

#include <algorithm>

#include "framework/nn/dims.h"
#include "framework/nn/functions.h"
#include "framework/nn/shapes.h"

namespace zg {

using nn::Caller;
using nn::Checked;

namespace {

Status CheckVolumes(const char* function, Var x) {
  if (x.shape().num_dims() == 5) return Status::Ok();
  return InvalidArgument("{}: expected the dims (samples, channels, depth, height, width)",
                         Caller(function, x));
}

// Error unless the weight has 5 dims, and the numbers of the depth are possible. `dims` names the
// weight's first ones.
Status CheckConvolution(const char* function, Var x, Var weight, const char* dims,
                        const Conv3dOptions& options) {
  ZG_RETURN_IF_ERROR(CheckVolumes(function, x));
  if (weight.shape().num_dims() != 5 || weight.dim(2) < 1) {
    return InvalidArgument("{}: got the weight {}, expected the dims ({}, depth, height, width)",
                           Caller(function, x), weight.shape().ToString(), dims);
  }
  const int64_t stride = options.stride.depth, padding = options.padding.depth,
                dilation = options.dilation.depth;
  constexpr int64_t kMost = int64_t{1} << 31;
  const auto fits = [&](int64_t number, int64_t least) {
    return number >= least && number <= kMost;
  };
  if (fits(stride, 1) && fits(padding, 0) && fits(dilation, 1)) return Status::Ok();
  return InvalidArgument(
      "{}: got stride {}, padding {} and dilation {} of the depth, expected numbers of at least 1, 0 "
      "and 1, and at most {}",
      Caller(function, x), stride, padding, dilation, kMost);
}

// How planes are convolved.
ConvOptions PlaneOf(const Conv3dOptions& options) {
  return {options.stride.plane(), options.padding.plane(), options.dilation.plane(),
          options.groups};
}

// Volumes as the planes of all samples, and back.
Var ToPlanes(Var by_depth) { return flatten(by_depth, 0, 1); }
Var FromPlanes(Var planes, int64_t samples, int64_t depth) {
  return reshape(planes, {samples, depth, planes.dim(1), planes.dim(2), planes.dim(3)});
}

// `of_planes` of the planes as images, then `of_depth` of images whose rows are planes.
template <typename OfPlanes, typename OfDepth>
Var InPlanesAndDepth(const char* function, Var x, const OfPlanes& of_planes,
                     const OfDepth& of_depth) {
  return Checked(function, x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(CheckVolumes(function, x));
    const int64_t samples = x.dim(0), channels = x.dim(1), depth = x.dim(2);
    const Var planes = of_planes(reshape(x, {samples, channels * depth, x.dim(3), x.dim(4)}));
    if (planes.empty()) return planes;
    const int64_t height = planes.dim(2), width = planes.dim(3);
    const Var y = of_depth(reshape(planes, {samples, channels, depth, height * width}));
    return y.empty() ? y : reshape(y, {samples, channels, y.dim(2), height, width});
  });
}

// `pool(x, kernel, stride, padding)` pools images.
template <typename Pool>
Var PoolVolumes(const char* function, Var x, Size3 kernel, const Pool3dOptions& options,
                const Pool& pool) {
  const Size3 stride = options.stride.value_or(kernel), padding = options.padding;
  return InPlanesAndDepth(
      function, x,
      [&](Var planes) { return pool(planes, kernel.plane(), stride.plane(), padding.plane()); },
      [&](Var by_depth) {
        return pool(by_depth, Size2(kernel.depth, 1), Size2(stride.depth, 1),
                    Size2(padding.depth, 0));
      });
}

}  // namespace

Var conv3d(Var x, Var weight, const Conv3dOptions& options) {
  return Checked("conv3d", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::Trace::Of("conv3d").CheckUsable(weight).WithContext("conv3d: weight"));
    ZG_RETURN_IF_ERROR(CheckConvolution("conv3d", x, weight, "output channels, channels", options));
    const int64_t stride = options.stride.depth, padding = options.padding.depth,
                  dilation = options.dilation.depth;
    const int64_t spread = dilation * (weight.dim(2) - 1) + 1;
    const int64_t room = x.dim(2) + 2 * padding - spread;
    if (room < 0) {
      return InvalidArgument("{}: got a window of depth {}, expected one within the padded volume",
                             Caller("conv3d", x), spread);
    }
    const Var by_depth = permute(pad(x, 2, padding, padding), {0, 2, 1, 3, 4});
    Var sum;
    for (int64_t k = 0; k < weight.dim(2); ++k) {
      const int64_t first = k * dilation;
      const Var seen = slice(by_depth, 1, first, first + room / stride * stride + 1, stride);
      const Var y = conv2d(ToPlanes(seen), select(weight, 2, k), PlaneOf(options));
      sum = k == 0 ? y : sum + y;
    }
    return sum.empty() ? sum
                       : permute(FromPlanes(sum, x.dim(0), room / stride + 1), {0, 2, 1, 3, 4});
  });
}

Var conv3d(Var x, Var weight, Var bias, const Conv3dOptions& options) {
  const nn::Trace::Function called("conv3d");
  return conv3d(x, weight, options) + reshape(bias, {-1, 1, 1, 1});
}

Var conv_transpose3d(Var x, Var weight, const Conv3dOptions& options, Size3 output_padding) {
  return Checked("conv_transpose3d", x, [&]() -> StatusOr<Var> {
    ZG_RETURN_IF_ERROR(nn::Trace::Of("conv_transpose3d").CheckUsable(weight).WithContext("weight"));
    ZG_RETURN_IF_ERROR(
        CheckConvolution("conv_transpose3d", x, weight, "channels, output channels", options));
    const int64_t stride = options.stride.depth, dilation = options.dilation.depth,
                  added = output_padding.depth;
    if (added < 0 || added >= std::max(stride, dilation)) {
      return InvalidArgument(
          "{}: got the output padding {} of the depth, expected at least 0 and less than the stride {} "
          "or the dilation {}",
          Caller("conv_transpose3d", x), added, stride, dilation);
    }
    const int64_t spread = (x.dim(2) - 1) * stride + 1;
    const int64_t whole = spread + dilation * (weight.dim(2) - 1) + added;
    const int64_t first = options.padding.depth, depth = whole - 2 * first;
    if (depth < 1) {
      return InvalidArgument("{}: its result would have the depth {}; give less padding",
                             Caller("conv_transpose3d", x), depth);
    }
    const Var planes = ToPlanes(permute(x, {0, 2, 1, 3, 4}));
    Var sum;
    for (int64_t k = 0; k < weight.dim(2); ++k) {
      const Var y =
          conv_transpose2d(planes, select(weight, 2, k), PlaneOf(options), output_padding.plane());
      if (y.empty()) return y;
      const int64_t before = k * dilation;
      const Var placed = nn::append("pad", {FromPlanes(y, x.dim(0), x.dim(2))},
                                    {{"dim", int64_t{1}},
                                     {"before", before},
                                     {"after", whole - before - spread},
                                     {"step", stride}});
      sum = k == 0 ? placed : sum + placed;
    }
    return permute(slice(sum, 1, first, first + depth), {0, 2, 1, 3, 4});
  });
}

Var conv_transpose3d(Var x, Var weight, Var bias, const Conv3dOptions& options,
                     Size3 output_padding) {
  const nn::Trace::Function called("conv_transpose3d");
  return conv_transpose3d(x, weight, options, output_padding) + reshape(bias, {-1, 1, 1, 1});
}

Var max_pool3d(Var x, Size3 kernel, const Pool3dOptions& options) {
  return PoolVolumes("max_pool3d", x, kernel, options,
                     [](Var images, Size2 window, Size2 stride, Size2 padding) {
                       return max_pool2d(images, window, {stride, padding});
                     });
}

Var avg_pool3d(Var x, Size3 kernel, const Pool3dOptions& options) {
  return PoolVolumes("avg_pool3d", x, kernel, options,
                     [](Var images, Size2 window, Size2 stride, Size2 padding) {
                       return avg_pool2d(images, window, {stride, padding});
                     });
}

Var interpolate3d(Var x, Size3 size, Interpolation mode, bool align_corners) {
  return InPlanesAndDepth(
      "interpolate3d", x,
      [&](Var planes) { return interpolate(planes, size.plane(), mode, align_corners); },
      [&](Var by_depth) {
        return interpolate(by_depth, {size.depth, by_depth.dim(3)}, mode, align_corners);
      });
}

}  // namespace zg
