// The rows of the maps of resample2d (framework/ops/resample.cc): the elements of one dim of x that
// an element of y is computed from, and their weights. Kernels of all devices compute them.
#pragma once

#include <cstdint>

#include "framework/base/host_device.h"
#include "framework/kernels/kernel.h"

namespace zg {

struct ResampleMap {
  enum class Method { kAverage, kAdaptive, kNearest, kLinear, kCubic };

  ResampleMap(const ir::Attributes& attributes, int i, int64_t in_size, int64_t out_size)
      : in(in_size),
        out(out_size),
        kernel(attributes.Ints("kernel")[i]),
        stride(out_size == 1 ? 1 : attributes.Ints("stride")[i]),
        padding(attributes.Ints("padding")[i]),
        counts_padding(attributes.Bool("counts_padding")),
        align_corners(attributes.Bool("align_corners")) {
    const std::string& name = attributes.String("method");
    method = name == "average"    ? Method::kAverage
             : name == "adaptive" ? Method::kAdaptive
             : name == "nearest"  ? Method::kNearest
             : name == "linear"   ? Method::kLinear
                                  : Method::kCubic;
  }

  // Element i of y is computed from the elements [Begin(i), End(i)) of x; neither ever decreases
  // with i.
  ZG_HOST_DEVICE ZG_INLINE int64_t Begin(int64_t i) const {
    switch (method) {
      case Method::kAverage:
        return i * stride < padding ? 0 : i * stride - padding;
      case Method::kLinear:
        return Below(i);
      case Method::kCubic:
        return Inside(Floor(Position(i)) - 1);
      default:
        return i * in / out;
    }
  }
  ZG_HOST_DEVICE ZG_INLINE int64_t End(int64_t i) const {
    switch (method) {
      case Method::kAverage:
        return Smaller(i * stride - padding + kernel, in);
      case Method::kAdaptive:
        return ((i + 1) * in + out - 1) / out;
      case Method::kNearest:
        return i * in / out + 1;
      case Method::kCubic:
        return Inside(Floor(Position(i)) + 2) + 1;
      default:
        return Smaller(Below(i) + 2, in);
    }
  }
  // The weight of element `at` of that range.
  ZG_HOST_DEVICE ZG_INLINE float Weight(int64_t i, int64_t at) const {
    switch (method) {
      case Method::kAverage:
        return 1.0f / static_cast<float>(counts_padding ? Counted(i) : End(i) - Begin(i));
      case Method::kAdaptive:
        return 1.0f / static_cast<float>(End(i) - Begin(i));
      case Method::kNearest:
        return 1.0f;
      case Method::kCubic:
        return CubicWeight(i, at);
      default:
        break;
    }
    const int64_t below = Below(i);
    if (below + 1 == in) return 1.0f;
    const double above = PositionInside(i) - static_cast<double>(below);
    return static_cast<float>(at == below ? 1.0 - above : above);
  }
  // The first element of y that uses elements after `at` - 1, or `out`.
  ZG_HOST_DEVICE ZG_INLINE int64_t FirstOf(int64_t at) const {
    int64_t first = 0;
    for (int64_t count = out; count > 0;) {
      const int64_t half = count / 2;
      if (End(first + half) > at) {
        count = half;
      } else {
        first += half + 1;
        count -= half + 1;
      }
    }
    return first;
  }

  ZG_HOST_DEVICE static ZG_INLINE int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
  // The position of element i of y in x.
  ZG_HOST_DEVICE ZG_INLINE double Position(int64_t i) const {
    if (align_corners) {
      return out == 1 ? 0.0 : static_cast<double>(i) * (in - 1) / static_cast<double>(out - 1);
    }
    return (static_cast<double>(i) + 0.5) * in / out - 0.5;
  }
  ZG_HOST_DEVICE ZG_INLINE double PositionInside(int64_t i) const {
    const double position = Position(i);
    return position < 0.0 ? 0.0 : position;
  }
  ZG_HOST_DEVICE ZG_INLINE int64_t Below(int64_t i) const {
    return Smaller(static_cast<int64_t>(PositionInside(i)), in - 1);
  }
  ZG_HOST_DEVICE static ZG_INLINE int64_t Floor(double position) {
    return position < 0.0 ? -1 : static_cast<int64_t>(position);  // it is at least -0.5
  }
  ZG_HOST_DEVICE ZG_INLINE int64_t Inside(int64_t at) const {
    return at < 0 ? 0 : Smaller(at, in - 1);
  }
  // The sum of those of the four elements around the position that stand for `at`.
  ZG_HOST_DEVICE ZG_INLINE float CubicWeight(int64_t i, int64_t at) const {
    const double position = Position(i);
    const int64_t first = Floor(position) - 1;
    double weight = 0.0;
    for (int64_t element = first; element < first + 4; ++element) {
      if (Inside(element) == at) weight += Cubic(position - static_cast<double>(element));
    }
    return static_cast<float>(weight);
  }
  // The elements of window i of averages that count the padding, but not what is beyond it.
  ZG_HOST_DEVICE ZG_INLINE int64_t Counted(int64_t i) const {
    return Smaller(kernel, in + 2 * padding - i * stride);
  }
  // The cubic convolution kernel (Keys 1981, equation 4) with a = -0.75.
  ZG_HOST_DEVICE static ZG_INLINE double Cubic(double distance) {
    constexpr double kA = -0.75;
    const double x = distance < 0.0 ? -distance : distance;
    return x <= 1.0 ? ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1.0
                    : kA * (((x - 5.0) * x + 8.0) * x - 4.0);
  }

  int64_t in;
  int64_t out;
  int64_t kernel;
  int64_t stride;
  int64_t padding;
  bool counts_padding;
  bool align_corners;
  Method method;
};

}  // namespace zg
