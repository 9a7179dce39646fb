#include "framework/kernels/cpu/image_windows.h"

#include <algorithm>
#include <type_traits>

#include "framework/kernels/cpu/convert.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// The taps that read the pixels residue, residue + stride, ... of dx along one dim.
struct PhaseOfDim {
  std::vector<int64_t> taps;
  std::vector<int64_t> deltas;  // pixel i of them reads pixel i + delta of dy
  int64_t count = 0;
};

PhaseOfDim MakePhase(const ConvShape& shape, int dim, int64_t residue) {
  PhaseOfDim phase;
  const int64_t stride = shape.stride[dim];
  phase.count = (shape.in[dim] - residue + stride - 1) / stride;
  for (int64_t tap = 0; tap < shape.kernel[dim]; ++tap) {
    const int64_t distance = residue + shape.padding[dim] - tap * shape.dilation[dim];
    if (distance % stride != 0) continue;
    phase.taps.push_back(tap);
    phase.deltas.push_back(distance / stride);
  }
  return phase;
}

// x as an element of a plane, f32 or the images' own.
template <typename Out, typename T>
Out As(T x) {
  if constexpr (std::is_same_v<Out, T>) {
    return x;
  } else {
    return ToF32(x);
  }
}

template <typename T, typename Out>
void PadRow(const PaddedPlane& plane, const T* row, Out* out) {
  const int64_t columns = plane.row_floats() / plane.interleave;
  const int64_t end = std::min(plane.in[1], plane.size[1] - plane.before[1]);
  for (int64_t first = 0; first < plane.interleave; ++first) {
    for (int64_t i = 0; i < columns; ++i) {
      const int64_t column = first + i * plane.interleave - plane.before[1];
      *out++ = column >= 0 && column < end ? As<Out>(row[column]) : Out{};
    }
  }
}

// The offsets `times` times, each `distance` after the ones before.
std::vector<int64_t> Repeated(const std::vector<int64_t>& offsets, int64_t times,
                              int64_t distance) {
  std::vector<int64_t> repeated;
  for (int64_t i = 0; i < times; ++i) {
    for (const int64_t offset : offsets) repeated.push_back(i * distance + offset);
  }
  return repeated;
}

template <typename T, typename Out>
void PadPlanesTo(const PaddedPlane& plane, DType dtype, const T* image, int64_t planes, Out* out) {
  const int64_t row_floats = plane.row_floats();
  const int64_t end = std::min(plane.before[1] + plane.in[1], plane.size[1]);
  for (int64_t p = 0; p < planes; ++p) {
    for (int64_t row = 0; row < plane.size[0]; ++row, out += row_floats) {
      const int64_t own = row - plane.before[0];
      const T* const from = image + own * plane.in[1];
      if (own < 0 || own >= plane.in[0]) {
        std::fill_n(out, row_floats, Out{});
      } else if (plane.interleave > 1 || end <= plane.before[1]) {
        PadRow(plane, from, out);
      } else {
        std::fill_n(out, plane.before[1], Out{});
        const int64_t count = end - plane.before[1];
        if constexpr (std::is_same_v<Out, T>) {
          std::copy_n(from, count, out + plane.before[1]);
        } else {
          ConvertFloats(dtype, from, DType::kF32, out + plane.before[1], count);
        }
        std::fill(out + end, out + row_floats, Out{});
      }
    }
    image += plane.in[0] * plane.in[1];
  }
}

}  // namespace

void PadPlanes(const PaddedPlane& plane, DType dtype, const void* images, int64_t planes,
               float* out) {
  WithFloatType(dtype, [&](auto zero) {
    PadPlanesTo(plane, dtype, static_cast<const decltype(zero)*>(images), planes, out);
  });
}

void PadHalfPlanes(const PaddedPlane& plane, const BFloat16* images, int64_t planes,
                   BFloat16* out) {
  PadPlanesTo(plane, DType::kBF16, images, planes, out);
}

std::vector<int64_t> WindowPhase::RowsOf(int64_t channels, int64_t plane_size) const {
  return Repeated(offsets, channels, plane_size);
}

std::vector<int64_t> WindowPhase::ColumnsOf(int64_t samples, int64_t sample_size) const {
  return Repeated(windows, samples, sample_size);
}

ImageWindows ForwardWindows(const ConvShape& shape) {
  ImageWindows windows;
  windows.result_pixels = shape.out_pixels();
  PaddedPlane& plane = windows.plane;
  for (int i = 0; i < 2; ++i) {
    plane.in[i] = shape.in[i];
    plane.before[i] = shape.padding[i];
    plane.size[i] =
        (shape.out[i] - 1) * shape.stride[i] + (shape.kernel[i] - 1) * shape.dilation[i] + 1;
  }
  plane.interleave = shape.stride[1];
  WindowPhase phase;
  for (int64_t tap = 0; tap < shape.taps(); ++tap) {
    phase.taps.push_back(tap);
    phase.offsets.push_back(tap / shape.kernel[1] * shape.dilation[0] * plane.row_floats() +
                            plane.OffsetOfColumn(tap % shape.kernel[1] * shape.dilation[1]));
  }
  for (int64_t pixel = 0; pixel < shape.out_pixels(); ++pixel) {
    phase.pixels.push_back(pixel);
    phase.windows.push_back(pixel / shape.out[1] * shape.stride[0] * plane.row_floats() +
                            pixel % shape.out[1]);
  }
  windows.phases.push_back(std::move(phase));
  return windows;
}

ImageWindows GradInputWindows(const ConvShape& shape) {
  ImageWindows windows;
  windows.result_pixels = shape.in_pixels();
  PaddedPlane& plane = windows.plane;
  std::vector<PhaseOfDim> phases[2];
  for (int i = 0; i < 2; ++i) {
    int64_t end = 1;
    for (int64_t residue = 0; residue < std::min(shape.stride[i], shape.in[i]); ++residue) {
      phases[i].push_back(MakePhase(shape, i, residue));
      for (const int64_t delta : phases[i].back().deltas) {
        plane.before[i] = std::max(plane.before[i], -delta);
        end = std::max(end, phases[i].back().count + delta);
      }
    }
    plane.in[i] = shape.out[i];
    plane.size[i] = plane.before[i] + end;
  }
  for (size_t a = 0; a < phases[0].size(); ++a) {
    for (size_t b = 0; b < phases[1].size(); ++b) {
      const PhaseOfDim& high = phases[0][a];
      const PhaseOfDim& wide = phases[1][b];
      WindowPhase phase;
      for (size_t i = 0; i < high.taps.size(); ++i) {
        for (size_t j = 0; j < wide.taps.size(); ++j) {
          phase.taps.push_back(high.taps[i] * shape.kernel[1] + wide.taps[j]);
          phase.offsets.push_back((plane.before[0] + high.deltas[i]) * plane.row_floats() +
                                  plane.before[1] + wide.deltas[j]);
        }
      }
      for (int64_t i = 0; i < high.count; ++i) {
        for (int64_t j = 0; j < wide.count; ++j) {
          phase.windows.push_back(i * plane.row_floats() + j);
          phase.pixels.push_back((static_cast<int64_t>(a) + i * shape.stride[0]) * shape.in[1] +
                                 static_cast<int64_t>(b) + j * shape.stride[1]);
        }
      }
      windows.phases.push_back(std::move(phase));
    }
  }
  return windows;
}

}  // namespace zg
