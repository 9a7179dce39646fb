#include "framework/kernels/cpu/depthwise_conv.h"

#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/image_band.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/planes_in_lanes.h"
#include "framework/kernels/cpu/sharing.h"

namespace zg {
namespace {

// The weights of sixteen planes: weights[tap * stride + lane].
struct LaneWeights {
  const float* weights;
  int64_t stride;
  const float* bias;  // null: none
};

// sums[i] = bias + the sum over taps of a weight times what its place in the window of i holds.
ZG_INLINE void SumTaps(const float* const* windows, const int64_t* offsets, int64_t num_taps,
                       const LaneWeights& weights, Lanes* sums) {
  constexpr int kAtOnce = 4;
  Lanes own[kAtOnce];
  const Lanes start = weights.bias == nullptr ? Lanes{} : LoadLanes(weights.bias);
#pragma GCC unroll 4
  for (int i = 0; i < kAtOnce; ++i) own[i] = start;
  for (int64_t tap = 0; tap < num_taps; ++tap) {
    const Lanes weight = LoadLanes(weights.weights + tap * weights.stride);
#pragma GCC unroll 4
    for (int i = 0; i < kAtOnce; ++i) own[i] += weight * LoadLanes(windows[i] + offsets[tap]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kAtOnce; ++i) sums[i] = own[i];
}

class DepthwiseKernel : public Kernel {
 protected:
  DepthwiseKernel(const ConvShape& shape, DType dtype, int threads, const WindowAxis& rows,
                  const WindowAxis& columns)
      : shape_(shape), dtype_(dtype), threads_(threads), band_(rows, columns) {}

  int64_t planes() const { return shape_.batch * shape_.groups; }
  // The work for a plane, counted in elements of a sum of two tensors.
  int64_t Cost() const { return shape_.taps() * shape_.out_pixels() / 4 + shape_.in_pixels(); }

  // Prefetches the same pixels of the next block of planes, so many planes ahead, or the next pixels if
  // a block would be too large for the cache.
  int64_t Ahead(int64_t pixels, int64_t planes) const {
    const int64_t bytes = kLanes * pixels * SizeOf(dtype_);
    return bytes <= kBandBytes ? planes * pixels : 256 / SizeOf(dtype_);
  }

  const ConvShape shape_;
  const DType dtype_;
  const int threads_;
  const ImageBand band_;
};

// y or dx.
class DepthwiseConv : public DepthwiseKernel {
 public:
  DepthwiseConv(const ConvShape& shape, const KernelSpec& spec, const WindowAxis& rows,
                const WindowAxis& columns)
      : DepthwiseKernel(shape, spec.outputs[0].dtype, spec.threads, rows, columns),
        has_bias_(spec.call.inputs.size() == 3) {}

  int64_t workspace_bytes() const override {
    return BytesOfWeights() +
           WorkspaceBytes(NumSharing(threads_, planes(), kLanes, Cost()), BytesOfThread());
  }

  Status Run(const KernelArguments& arguments) override {
    WithFloatType(dtype_, [&](auto zero) { RunAs<decltype(zero)>(arguments); });
    return Status::Ok();
  }

 private:
  // Sixteen channels follow on any one.
  int64_t weights_stride() const { return shape_.groups + kLanes - 1; }
  int64_t BytesOfWeights() const {
    return WholeLines((shape_.taps() + 1) * weights_stride() * static_cast<int64_t>(sizeof(float)));
  }
  int64_t BytesOfThread() const { return band_.floats() * static_cast<int64_t>(sizeof(float)); }

  // By tap, then by channel; after the last channel come the first ones again.
  template <typename T>
  void ReadWeights(const T* weights, int64_t taps, float* to) const {
    for (int64_t tap = 0; tap < taps; ++tap, to += weights_stride()) {
      for (int64_t i = 0; i < shape_.groups; ++i) to[i] = ToF32(weights[i * taps + tap]);
      for (int64_t i = shape_.groups; i < weights_stride(); ++i) to[i] = to[i - shape_.groups];
    }
  }

  template <typename T>
  void RunAs(const KernelArguments& arguments) const {
    float* const weights = static_cast<float*>(arguments.workspace);
    float* const bias = weights + shape_.taps() * weights_stride();
    ReadWeights(arguments.input<T>(1), shape_.taps(), weights);
    if (has_bias_) ReadWeights(arguments.input<T>(2), 1, bias);
    char* const scratch = static_cast<char*>(arguments.workspace) + BytesOfWeights();
    const int64_t from_pixels = band_.source_pixels(), to_pixels = band_.result_pixels();
    ForRanges(
        arguments.threads, planes(), kLanes, Cost(), [&](int64_t begin, int64_t end, int thread) {
          float* const band = static_cast<float*>(WorkspaceOf(thread, scratch, BytesOfThread()));
          std::fill_n(band, band_.floats(), 0.0f);
          for (; begin < end; begin += kLanes) {
            const int64_t count = std::min<int64_t>(kLanes, end - begin);
            const int64_t channel = begin % shape_.groups;
            RunPlanes<T>(
                {arguments.input<T>(0) + begin * from_pixels, from_pixels, count,
                 Ahead(from_pixels, kLanes)},
                {weights + channel, weights_stride(), has_bias_ ? bias + channel : nullptr}, band,
                {arguments.output<T>(0) + begin * to_pixels, to_pixels, count});
          }
        });
  }

  template <typename T>
  void RunPlanes(const Planes<const T>& from, const LaneWeights& weights, float* band,
                 const Planes<T>& to) const {
    const int64_t rows = band_.num_result_rows(), width = band_.result_columns();
    for (int64_t first = 0; first < rows; first += band_.result_rows()) {
      const int64_t end = std::min(first + band_.result_rows(), rows);
      Multiversion([=]() ZG_VERSION {
        band_.Load(from, first, end, band);
        const PixelWalk::Steps steps = band_.window_steps();
        const int64_t* const offsets = band_.offsets().data();
        const int64_t taps = shape_.taps();
        ForChunks(
            0, (end - first) * width,
            [=](int64_t pixel, int64_t pixels) __attribute__((always_inline)) {
              const float* windows[kLanes];
              PixelWalk walk(steps, pixel);
              for (int64_t i = 0; i < kLanes; ++i) {
                windows[i] = band + walk.offset();
                if (i + 1 < pixels) walk.Next();
              }
              Lanes sums[kLanes];
              for (int i = 0; i < kLanes; i += 4) {
                SumTaps(windows + i, offsets, taps, weights, sums + i);
              }
              StorePixels(sums, first * width + pixel, pixels, to);
            });
      });
    }
  }

  const bool has_bias_;
};

// Sixteen channels at a time. The samples' sums are added in their order.
class DepthwiseConvGradWeight : public DepthwiseKernel {
 public:
  explicit DepthwiseConvGradWeight(const ConvShape& shape, const KernelSpec& spec)
      : DepthwiseKernel(shape, spec.outputs[0].dtype, spec.threads, ForwardAxis(shape, 0),
                        ForwardAxis(shape, 1)) {}

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, shape_.groups, kLanes, CostOfChannel()),
                          BytesOfThread());
  }

  Status Run(const KernelArguments& arguments) override {
    WithFloatType(dtype_, [&](auto zero) { RunAs<decltype(zero)>(arguments); });
    return Status::Ok();
  }

 private:
  int64_t CostOfChannel() const { return shape_.batch * Cost(); }
  int64_t floats_of_dy() const { return band_.result_rows() * band_.result_columns() * kLanes; }
  int64_t BytesOfThread() const {
    return (band_.floats() + floats_of_dy() + shape_.taps() * kLanes) *
           static_cast<int64_t>(sizeof(float));
  }

  template <typename T>
  void RunAs(const KernelArguments& arguments) const {
    const int64_t in = shape_.in_pixels(), out = shape_.out_pixels(), taps = shape_.taps();
    ForRanges(
        arguments.threads, shape_.groups, kLanes, CostOfChannel(),
        [&](int64_t begin, int64_t end, int thread) {
          float* const band =
              static_cast<float*>(WorkspaceOf(thread, arguments.workspace, BytesOfThread()));
          float* const sums = band + band_.floats() + floats_of_dy();
          std::fill_n(band, band_.floats(), 0.0f);
          for (; begin < end; begin += kLanes) {
            const int64_t count = std::min<int64_t>(kLanes, end - begin);
            std::fill_n(sums, taps * kLanes, 0.0f);
            for (int64_t n = 0; n < shape_.batch; ++n) {
              const int64_t plane = n * shape_.groups + begin;
              AddPlanes<T>(
                  {arguments.input<T>(0) + plane * out, out, count, Ahead(out, shape_.groups)},
                  {arguments.input<T>(1) + plane * in, in, count, Ahead(in, shape_.groups)}, band,
                  sums);
            }
            T* const dw = arguments.output<T>(0) + begin * taps;
            for (int64_t i = 0; i < count; ++i) {
              for (int64_t tap = 0; tap < taps; ++tap) {
                dw[i * taps + tap] = FromF32<T>(sums[tap * kLanes + i]);
              }
            }
          }
        });
  }

  template <typename T>
  void AddPlanes(const Planes<const T>& dy, const Planes<const T>& x, float* band,
                 float* sums) const {
    const int64_t rows = band_.num_result_rows(), width = band_.result_columns();
    float* const own = band + band_.floats();
    for (int64_t first = 0; first < rows; first += band_.result_rows()) {
      const int64_t end = std::min(first + band_.result_rows(), rows);
      Multiversion([=]() ZG_VERSION {
        band_.Load(x, first, end, band);
        ForChunks(
            first * width,
            end * width, [&](int64_t pixel, int64_t pixels) __attribute__((always_inline)) {
              Lanes vectors[kLanes];
              LoadPixels(dy, pixel, pixels, vectors);
              for (int64_t i = 0; i < pixels; ++i) {
                StoreLanes(vectors[i], own + (pixel - first * width + i) * kLanes);
              }
            });
        AddProducts(own, (end - first) * width, band, sums);
      });
    }
  }

  // Adds the products of these pixels of dy with each tap of their windows.
  ZG_INLINE void AddProducts(const float* dy, int64_t pixels, const float* band,
                             float* sums) const {
    constexpr int kAtOnce = 5;  // which makes little waste of 9, 25 or 49 taps
    const int64_t num_taps = shape_.taps();
    const PixelWalk::Steps steps = band_.window_steps();
    const int64_t columns = std::min(steps.width, pixels);
    const int64_t* const offsets = band_.offsets().data();
    for (int64_t tap = 0; tap < num_taps; tap += kAtOnce) {
      int64_t at[kAtOnce];  // the last ones again, if there are not as many
      for (int i = 0; i < kAtOnce; ++i) at[i] = offsets[std::min(tap + i, num_taps - 1)];
      Lanes own[kAtOnce] = {};
      const float* from = dy;
      for (int64_t row = 0; row < pixels / columns; ++row) {
        const float* window = band + row * steps.row;
        for (int64_t column = 0; column < columns; ++column) {
          const Lanes slope = LoadLanes(from);
#pragma GCC unroll 5
          for (int i = 0; i < kAtOnce; ++i) own[i] += slope * LoadLanes(window + at[i]);
          window += steps.column;
          from += kLanes;
        }
      }
#pragma GCC unroll 5
      for (int i = 0; i < kAtOnce; ++i) {
        if (tap + i >= num_taps) break;
        float* const sum = sums + (tap + i) * kLanes;
        StoreLanes(LoadLanes(sum) + own[i], sum);
      }
    }
  }
};

}  // namespace

std::unique_ptr<Kernel> MakeDepthwiseConv(const KernelSpec& spec) {
  const ConvShape shape = ConvShape::OfForward(spec);
  return std::make_unique<DepthwiseConv>(shape, spec, ForwardAxis(shape, 0), ForwardAxis(shape, 1));
}
std::unique_ptr<Kernel> MakeDepthwiseConvGradInput(const KernelSpec& spec) {
  const ConvShape shape = ConvShape::OfGradInput(spec);
  return std::make_unique<DepthwiseConv>(shape, spec, GradInputAxis(shape, 0),
                                         GradInputAxis(shape, 1));
}
std::unique_ptr<Kernel> MakeDepthwiseConvGradWeight(const KernelSpec& spec) {
  return std::make_unique<DepthwiseConvGradWeight>(ConvShape::OfGradWeight(spec), spec);
}

}  // namespace zg
