#include "framework/kernels/cpu/window_grad_weight.h"

#include <algorithm>

#include "framework/kernels/cpu/gemm_pack.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/cpu/transpose.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

constexpr int64_t kMaxDepth = 384;

// Transposes pixels of a row in all channels, which are `plane` apart, to pixels with contiguous
// channels.
template <typename T>
void GatherChannels(const T* row, int64_t pixels, int64_t plane, int64_t channels, float* out) {
  Multiversion([=]() ZG_VERSION {
    int64_t channel = 0;
    for (; channel + kLanes <= channels; channel += kLanes) {
      const T* const from = row + channel * plane;
      int64_t pixel = 0;
      for (; pixel + kLanes <= pixels; pixel += kLanes) {
        Lanes square[kLanes];
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) square[i] = LoadLanes(from + i * plane + pixel);
        Transpose(square);
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) {
          StoreLanes(square[i], out + (pixel + i) * channels + channel);
        }
      }
      for (; pixel < pixels; ++pixel) {
        for (int i = 0; i < kLanes; ++i) {
          out[pixel * channels + channel + i] = ToF32(from[i * plane + pixel]);
        }
      }
    }
    for (; channel < channels; ++channel) {
      for (int64_t pixel = 0; pixel < pixels; ++pixel) {
        out[pixel * channels + channel] = ToF32(row[channel * plane + pixel]);
      }
    }
  });
}

}  // namespace

std::vector<WeightRange> SharedWeights(const ConvShape& shape, int threads) {
  const bool by_groups = shape.groups >= threads;
  const int64_t count = by_groups ? shape.groups : shape.channels;
  const int64_t pixels = shape.batch * shape.out_pixels();
  const int num_ranges = NumSharingProduct(
      threads, count, 1, pixels * shape.groups * shape.outputs * shape.channels * shape.taps());
  std::vector<WeightRange> ranges;
  for (int i = 0; i < num_ranges; ++i) {
    const int64_t begin = RangeBegin(count, 1, num_ranges, i);
    const int64_t end = RangeBegin(count, 1, num_ranges, i + 1);
    ranges.push_back(by_groups ? WeightRange{begin, end, 0, shape.channels}
                               : WeightRange{0, shape.groups, begin, end});
  }
  return ranges;
}

WindowGradWeight::WindowGradWeight(const ConvShape& shape, const WeightRange& range, DType dtype)
    : shape_(shape), range_(range), dtype_(dtype) {
  for (int i = 0; i < 2; ++i) {
    plane_[i] =
        (shape.out[i] - 1) * shape.stride[i] + (shape.kernel[i] - 1) * shape.dilation[i] + 1;
  }
  const int64_t pixels = shape.out_pixels();
  samples_ = std::max<int64_t>(1, std::min(shape.batch, kMaxDepth / pixels));
  for (int64_t sample = 0; sample < samples_; ++sample) {
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
      const int64_t window = pixel / shape.out[1] * shape.stride[0] * plane_[1] +
                             pixel % shape.out[1] * shape.stride[1];
      rows_.push_back((sample * padded_pixels() + window) * range.channels());
    }
  }
  for (int64_t tap = 0; tap < shape.taps(); ++tap) {
    const int64_t pixel = tap / shape.kernel[1] * shape.dilation[0] * plane_[1] +
                          tap % shape.kernel[1] * shape.dilation[1];
    for (int64_t channel = 0; channel < range.channels(); ++channel) {
      columns_.push_back(pixel * range.channels() + channel);
    }
  }
  run_ = RunOf(columns_, range.channels());
  const int64_t depth = IndexedBlockDepth(samples_ * pixels);
  layout_.pieces = AlignedFloats(samples_ * padded_pixels() * range.channels());
  layout_.panel = layout_.pieces + AlignedFloats(RoundUp(shape.outputs, kTileRows) * depth);
  layout_.sums = layout_.panel + AlignedFloats(IndexedPanelFloats(depth));
  layout_.end = layout_.sums + shape.outputs * columns();
}

void WindowGradWeight::CopySamples(const void* x, int64_t first, int64_t samples, int64_t group,
                                   float* copies) const {
  std::fill_n(copies, samples * padded_pixels() * range_.channels(), 0.0f);
  const int64_t columns = std::min(shape_.in[1], plane_[1] - shape_.padding[1]);
  const int64_t rows = std::min(shape_.in[0], plane_[0] - shape_.padding[0]);
  if (columns <= 0) return;
  WithFloatType(dtype_, [&](auto zero) {
    for (int64_t i = 0; i < samples; ++i) {
      const auto* const image =
          static_cast<const decltype(zero)*>(x) +
          (((first + i) * shape_.groups + group) * shape_.channels + range_.first_channel) *
              shape_.in_pixels();
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t pixel = i * padded_pixels() + (row + shape_.padding[0]) * plane_[1];
        GatherChannels(image + row * shape_.in[1], columns, shape_.in_pixels(), range_.channels(),
                       copies + (pixel + shape_.padding[1]) * range_.channels());
      }
    }
  });
}

void WindowGradWeight::PackPieces(const void* dy, int64_t first, int64_t begin, int64_t depth,
                                  int64_t group, float* pieces) const {
  const int64_t pixels = shape_.out_pixels();
  WithFloatType(dtype_, [&](auto zero) {
    for (int64_t row = 0; row < shape_.outputs; row += kTileRows) {
      const int64_t rows = std::min(kTileRows, shape_.outputs - row);
      for (int64_t done = 0; done < depth;) {
        const int64_t count = std::min(depth - done, pixels);
        const int64_t sample = first + (begin + done) / pixels;
        const int64_t plane = (sample * shape_.groups + group) * shape_.outputs + row;
        zg::PackPieces(
            static_cast<const decltype(zero)*>(dy) + plane * pixels + (begin + done) % pixels,
            pixels, count, rows, pieces + row * depth + done * kTileRows);
        done += count;
      }
    }
  });
}

void WindowGradWeight::Store(const float* sums, int64_t group, void* dw) const {
  const int64_t taps = shape_.taps();
  WithFloatType(dtype_, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t row = 0; row < shape_.outputs; ++row, sums += columns()) {
      T* to = static_cast<T*>(dw) +
              ((group * shape_.outputs + row) * shape_.channels + range_.first_channel) * taps;
      for (int64_t channel = 0; channel < range_.channels(); ++channel) {
        for (int64_t tap = 0; tap < taps; ++tap) {
          *to++ = FromF32<T>(sums[tap * range_.channels() + channel]);
        }
      }
    }
  });
}

void WindowGradWeight::Run(const void* dy, const void* x, void* dw, void* workspace) const {
  float* const copies = static_cast<float*>(workspace);
  float* const pieces = copies + layout_.pieces;
  float* const sums = copies + layout_.sums;
  for (int64_t group = range_.first_group; group < range_.end_group; ++group) {
    for (int64_t first = 0; first < shape_.batch; first += samples_) {
      const int64_t samples = std::min(samples_, shape_.batch - first);
      const int64_t depth = samples * shape_.out_pixels();
      const int64_t block = IndexedBlockDepth(depth);
      CopySamples(x, first, samples, group, copies);
      for (int64_t begin = 0; begin < depth; begin += block) {
        IndexedProduct product;
        product.depth = std::min(block, depth - begin);
        PackPieces(dy, first, begin, product.depth, group, pieces);
        product.a = pieces;
        product.b = {copies, rows_.data() + begin, columns_.data(), run_};
        product.rows = shape_.outputs;
        product.columns = columns();
        product.c = sums;
        product.c_stride = columns();
        product.continues = first > 0 || begin > 0;
        Multiply(product, copies + layout_.panel);
      }
    }
    Store(sums, group, dw);
  }
}

}  // namespace zg
