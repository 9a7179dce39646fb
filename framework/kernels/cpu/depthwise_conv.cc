#include "framework/kernels/cpu/depthwise_conv.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/image_windows.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"

namespace zg {
namespace {

// So many sums are computed at once; what is read and written behind the last one is scratch.
constexpr int64_t kWide = 4 * kLanes;

template <int kVectors>
ZG_INLINE void SumTapsAt(const float* x, const int64_t* offsets, const float* weights,
                         int64_t num_taps, float start, float* y) {
  Lanes sums[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) sums[v] = Lanes{} + start;
  for (int64_t tap = 0; tap < num_taps; ++tap) {
    const float* const from = x + offsets[tap];
    const Lanes weight = Lanes{} + weights[tap];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[v] += weight * LoadLanes(from + v * kLanes);
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) StoreLanes(sums[v], y + v * kLanes);
}

// y[p] = start + the sum over taps of weights[tap] x[p + offsets[tap]], for p < count.
void SumTaps(const float* x, const std::vector<int64_t>& taps, const float* weights, float start,
             int64_t count, float* y) {
  const int64_t* const offsets = taps.data();
  const auto num_taps = static_cast<int64_t>(taps.size());
  Multiversion([=]() ZG_VERSION {
    int64_t p = 0;
    for (; p + kWide <= count; p += kWide) {
      SumTapsAt<4>(x + p, offsets, weights, num_taps, start, y + p);
    }
    for (; p < count; p += kLanes) {
      SumTapsAt<1>(x + p, offsets, weights, num_taps, start, y + p);
    }
  });
}

// Adds the sums over p < count of dy[p] x[p + offsets[tap]] for each tap.
void AddProducts(const float* dy, const float* x, const std::vector<int64_t>& taps, int64_t count,
                 float* products) {
  const int64_t* const offsets = taps.data();
  const auto num_taps = static_cast<int64_t>(taps.size());
  Multiversion([=]() ZG_VERSION {
    constexpr int kAtOnce = 4;
    for (int64_t first = 0; first < num_taps; first += kAtOnce) {
      // The last ones again, if there are not as many.
      const auto offset = [=](int64_t i) __attribute__((always_inline)) {
        return offsets[std::min(first + i, num_taps - 1)];
      };
      const float* const x0 = x + offset(0);
      const float* const x1 = x + offset(1);
      const float* const x2 = x + offset(2);
      const float* const x3 = x + offset(3);
      float sums[kAtOnce];
      SumManyTerms<kAtOnce>(
          count,
          [&](const auto& load, Lanes* lanes) __attribute__((always_inline)) {
            const Lanes own = load(dy, 0.0f);
            lanes[0] += own * load(x0, 0.0f);
            lanes[1] += own * load(x1, 0.0f);
            lanes[2] += own * load(x2, 0.0f);
            lanes[3] += own * load(x3, 0.0f);
          },
          sums);
      for (int64_t i = 0; i < std::min<int64_t>(kAtOnce, num_taps - first); ++i) {
        products[first + i] += sums[i];
      }
    }
  });
}

// Rows of `count` numbers, `stride` apart, in `dtype`.
void StoreRows(const float* from, int64_t stride, int64_t rows, int64_t count, DType dtype,
               void* to) {
  if (dtype != DType::kF32) return RoundRows(from, stride, rows, count, dtype, to, count);
  float* row = static_cast<float*>(to);
  for (int64_t i = 0; i < rows; ++i, row += count) std::copy_n(from + i * stride, count, row);
}

class DepthwiseKernel : public Kernel {
 protected:
  DepthwiseKernel(const ConvShape& shape, const KernelSpec& spec)
      : shape_(shape), dtype_(spec.outputs[0].dtype), threads_(spec.threads) {
    for (int i = 0; i < 2; ++i) {
      plane_.in[i] = shape.in[i];
      plane_.before[i] = shape.padding[i];
      plane_.size[i] = shape.in[i] + 2 * shape.padding[i];
    }
  }

  // A plane's rows have windows at `stride[1]` columns from each other: as neighbours.
  void PutWindowsSideBySide() { plane_.interleave = shape_.stride[1]; }
  // The offset of each tap from its window.
  std::vector<int64_t> Taps() const {
    std::vector<int64_t> taps;
    for (int64_t k = 0; k < shape_.kernel[0]; ++k) {
      for (int64_t l = 0; l < shape_.kernel[1]; ++l) {
        taps.push_back(k * shape_.dilation[0] * plane_.row_floats() +
                       plane_.OffsetOfColumn(l * shape_.dilation[1]));
      }
    }
    return taps;
  }

  int64_t planes() const { return shape_.batch * shape_.groups; }
  // The work for a plane, counted in elements of a sum of two tensors.
  int64_t Cost() const { return shape_.taps() * shape_.out_pixels() / 4 + shape_.in_pixels(); }
  template <typename T>
  T* PlaneOf(T* images, int64_t plane, int64_t pixels) const {
    return images + plane * pixels * SizeOf(dtype_);
  }
  // In f32: a channel's weights, or all of a bias.
  void ReadWeights(const void* weights, int64_t channel, int64_t count, float* to) const {
    ConvertFloats(dtype_, static_cast<const char*>(weights) + channel * count * SizeOf(dtype_),
                  DType::kF32, to, count);
  }

  const ConvShape shape_;
  const DType dtype_;
  const int threads_;
  PaddedPlane plane_;
};

class DepthwiseConv : public DepthwiseKernel {
 public:
  explicit DepthwiseConv(const KernelSpec& spec)
      : DepthwiseKernel(ConvShape::OfForward(spec), spec), has_bias_(spec.call.inputs.size() == 3) {
    PutWindowsSideBySide();
    taps_ = Taps();
    row_ = shape_.stride[0] * plane_.row_floats();
    // Neighbouring rows are computed as one, with what lies between them.
    rows_at_once_ = shape_.stride[0] == 1 ? shape_.out[0] : 1;
  }

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, planes(), 1, Cost()), BytesOfThread());
  }

  Status Run(const KernelArguments& arguments) override {
    ForRanges(arguments.threads, planes(), 1, Cost(), [&](int64_t begin, int64_t end, int thread) {
      float* const x =
          static_cast<float*>(WorkspaceOf(thread, arguments.workspace, BytesOfThread()));
      float* const y = x + plane_.floats() + kWide;
      float* const weights = y + rows_at_once_ * row_ + kWide;
      for (int64_t plane = begin; plane < end; ++plane) {
        const int64_t channel = plane % shape_.groups;
        PadPlanes(plane_, dtype_, PlaneOf(arguments.input<char>(0), plane, shape_.in_pixels()), 1,
                  x);
        ReadWeights(arguments.inputs[1], channel, shape_.taps(), weights);
        float bias = 0.0f;
        if (has_bias_) ReadWeights(arguments.inputs[2], channel, 1, &bias);
        char* const to = PlaneOf(arguments.output<char>(0), plane, shape_.out_pixels());
        for (int64_t i = 0; i < shape_.out[0]; i += rows_at_once_) {
          SumTaps(x + i * row_, taps_, weights, bias, (rows_at_once_ - 1) * row_ + shape_.out[1],
                  y);
          StoreRows(y, row_, rows_at_once_, shape_.out[1], dtype_,
                    to + i * shape_.out[1] * SizeOf(dtype_));
        }
      }
    });
    return Status::Ok();
  }

 private:
  int64_t BytesOfThread() const {
    return (plane_.floats() + rows_at_once_ * row_ + 2 * kWide + shape_.taps()) *
           static_cast<int64_t>(sizeof(float));
  }

  const bool has_bias_;
  std::vector<int64_t> taps_;
  int64_t row_;
  int64_t rows_at_once_;
};

// dx[p] = the sum over taps of weight[tap] dy[p - offset of the tap], of a dy whose pixels lie where
// their windows begin, with zeros between and around them.
class DepthwiseConvGradInput : public DepthwiseKernel {
 public:
  explicit DepthwiseConvGradInput(const KernelSpec& spec)
      : DepthwiseKernel(ConvShape::OfGradInput(spec), spec), taps_(Taps()), last_(taps_.back()) {
    for (int64_t& tap : taps_) tap = last_ - tap;
  }

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, planes(), 1, Cost()), BytesOfThread());
  }

  Status Run(const KernelArguments& arguments) override {
    ForRanges(arguments.threads, planes(), 1, Cost(), [&](int64_t begin, int64_t end, int thread) {
      float* const dy =
          static_cast<float*>(WorkspaceOf(thread, arguments.workspace, BytesOfThread()));
      float* const dx = dy + last_ + plane_.floats() + kWide;
      float* const weights = dx + plane_.floats() + kWide;
      std::fill(dy, dx, 0.0f);
      const int64_t row = plane_.row_floats();
      const int64_t first = plane_.before[0] * row + plane_.before[1];  // of the image
      for (int64_t plane = begin; plane < end; ++plane) {
        ReadWeights(arguments.inputs[1], plane % shape_.groups, shape_.taps(), weights);
        Spread(PlaneOf(arguments.input<char>(0), plane, shape_.out_pixels()), dy + last_);
        SumTaps(dy + first, taps_, weights, 0.0f, (shape_.in[0] - 1) * row + shape_.in[1], dx);
        StoreRows(dx, row, shape_.in[0], shape_.in[1], dtype_,
                  PlaneOf(arguments.output<char>(0), plane, shape_.in_pixels()));
      }
    });
    return Status::Ok();
  }

 private:
  int64_t BytesOfThread() const {
    return (last_ + 2 * plane_.floats() + 2 * kWide + shape_.taps()) *
           static_cast<int64_t>(sizeof(float));
  }

  void Spread(const char* from, float* to) const {
    WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const T* pixel = reinterpret_cast<const T*>(from);
      for (int64_t i = 0; i < shape_.out[0]; ++i) {
        float* const row = to + i * shape_.stride[0] * plane_.row_floats();
        for (int64_t j = 0; j < shape_.out[1]; ++j) row[j * shape_.stride[1]] = ToF32(*pixel++);
      }
    });
  }

  std::vector<int64_t> taps_;
  int64_t last_;  // the offset of the last tap, which is the largest
};

class DepthwiseConvGradWeight : public DepthwiseKernel {
 public:
  explicit DepthwiseConvGradWeight(const KernelSpec& spec)
      : DepthwiseKernel(ConvShape::OfGradWeight(spec), spec) {
    PutWindowsSideBySide();
    taps_ = Taps();
    row_ = shape_.stride[0] * plane_.row_floats();
    count_ = (shape_.out[0] - 1) * row_ + shape_.out[1];
  }

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, shape_.groups, 1, CostOfChannel()), BytesOfThread());
  }

  // The samples' sums are added in their order.
  Status Run(const KernelArguments& arguments) override {
    ForRanges(arguments.threads, shape_.groups, 1, CostOfChannel(),
              [&](int64_t begin, int64_t end, int thread) {
                float* const x =
                    static_cast<float*>(WorkspaceOf(thread, arguments.workspace, BytesOfThread()));
                float* const dy = x + plane_.floats();
                float* const sums = dy + count_;
                std::fill(dy, sums, 0.0f);
                for (int64_t channel = begin; channel < end; ++channel) {
                  std::fill_n(sums, shape_.taps(), 0.0f);
                  for (int64_t n = 0; n < shape_.batch; ++n) {
                    const int64_t plane = n * shape_.groups + channel;
                    PadPlanes(plane_, dtype_,
                              PlaneOf(arguments.input<char>(1), plane, shape_.in_pixels()), 1, x);
                    const char* from =
                        PlaneOf(arguments.input<char>(0), plane, shape_.out_pixels());
                    for (int64_t i = 0; i < shape_.out[0]; ++i) {
                      ConvertFloats(dtype_, from + i * shape_.out[1] * SizeOf(dtype_), DType::kF32,
                                    dy + i * row_, shape_.out[1]);
                    }
                    AddProducts(dy, x, taps_, count_, sums);
                  }
                  StoreRows(sums, 0, 1, shape_.taps(), dtype_,
                            PlaneOf(arguments.output<char>(0), channel, shape_.taps()));
                }
              });
    return Status::Ok();
  }

 private:
  int64_t CostOfChannel() const { return shape_.batch * Cost(); }
  int64_t BytesOfThread() const {
    return (plane_.floats() + count_ + shape_.taps()) * static_cast<int64_t>(sizeof(float));
  }

  std::vector<int64_t> taps_;
  int64_t row_;    // of dy in the plane, with what lies between it and the next one
  int64_t count_;  // of dy with zeros between its rows
};

}  // namespace

std::unique_ptr<Kernel> MakeDepthwiseConv(const KernelSpec& spec) {
  return std::make_unique<DepthwiseConv>(spec);
}
std::unique_ptr<Kernel> MakeDepthwiseConvGradInput(const KernelSpec& spec) {
  return std::make_unique<DepthwiseConvGradInput>(spec);
}
std::unique_ptr<Kernel> MakeDepthwiseConvGradWeight(const KernelSpec& spec) {
  return std::make_unique<DepthwiseConvGradWeight>(spec);
}

}  // namespace zg
