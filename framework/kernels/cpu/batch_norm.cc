#include <algorithm>
#include <cmath>
#include <cstdint>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// Channels are processed in blocks whose rows of a sample, which are neighbours in memory, have
// together about this many elements: several pages, as a processor reads the first lines of a page
// slowly, and few enough that all rows of the block stay in the caches from one pass to the next.
constexpr int64_t kBlockElements = 8192;
constexpr int64_t kMaxBlockChannels = 1024;

// x (samples, channels, pixels), or the neighbouring channels of a block.
struct Images {
  explicit Images(const Shape& shape) : samples(shape.dim(0)), channels(shape.dim(1)) {
    for (int dim = 2; dim < shape.num_dims(); ++dim) pixels *= shape.dim(dim);
    step = channels * pixels;
  }
  int64_t samples;
  int64_t channels;  // at most kMaxBlockChannels in a block
  int64_t pixels = 1;
  int64_t step;  // from a sample's row of a channel to the next sample's

  float count() const { return static_cast<float>(samples * pixels); }
  int64_t block_channels() const {
    return std::clamp<int64_t>(kBlockElements / std::max<int64_t>(1, pixels), 1, kMaxBlockChannels);
  }
};

// Calls run(first_channel, block) for all blocks.
template <typename Run>
void ForBlocks(Threads* threads, const Images& images, const Run& run) {
  ForRanges(threads, images.channels, 1, 2 * images.samples * images.pixels,
            [&](int64_t begin, int64_t end, int) {
              Images block = images;
              for (; begin < end; begin += block.channels) {
                block.channels = std::min(images.block_channels(), end - begin);
                run(begin, block);
              }
            });
}

// A number of each channel of a block.
template <typename Number>
using OfChannels = Number[kMaxBlockChannels];

// Adds the sums of a sample's row of each channel to `totals`. terms(load, number, sums) adds its
// lanes to sums[0], sums[1], ...; load(x, padding) reads elements, as for SumManyTerms, and
// number(numbers) the number of their channel, or channels.
template <int kNumSums, typename Terms>
ZG_INLINE void AddChannels(const Images& block, int64_t row, const Terms& terms,
                           OfChannels<double>* totals) {
  for (int64_t channel = 0; channel < block.channels; ++channel) {
    const int64_t offset = row + channel * block.pixels;
    float sums[kNumSums];
    SumManyTerms<kNumSums>(
        block.pixels,
        [&](const auto& load, Lanes* lanes) __attribute__((always_inline)) {
          terms(
              [&](const auto* x, float padding)
                  __attribute__((always_inline)) { return load(x + offset, padding); },
              [&](const float* numbers) __attribute__((always_inline)) { return numbers[channel]; },
              lanes);
        },
        sums);
    for (int k = 0; k < kNumSums; ++k) totals[k][channel] += sums[k];
  }
}

// The same with one pixel: the lanes are sixteen channels.
template <int kNumSums, typename Terms>
ZG_INLINE void AddFeatures(const Images& block, int64_t row, const Terms& terms,
                           OfChannels<double>* totals) {
  for (int64_t channel = 0; channel < block.channels; channel += kLanes) {
    const int64_t left = std::min<int64_t>(kLanes, block.channels - channel);
    const auto lanes_of = [&](const auto* data) __attribute__((always_inline)) {
      return left == kLanes ? LoadLanes(data + channel) : LoadLanes(data + channel, left, 0.0f);
    };
    Lanes lanes[kNumSums] = {};
    terms(
        [&](const auto* x, const auto&)
            __attribute__((always_inline)) { return lanes_of(x + row); },
        lanes_of, lanes);
    for (int k = 0; k < kNumSums; ++k) {
      float sums[kLanes];
      StoreLanes(lanes[k], sums);
      for (int64_t i = 0; i < left; ++i) totals[k][channel + i] += sums[i];
    }
  }
}

// Writes the sums of each channel: f32 within each sample's row, f64 across rows.
template <int kNumSums, typename Terms>
void Sum(const Images& block, const Terms& terms, OfChannels<double>* totals) {
  for (int k = 0; k < kNumSums; ++k) std::fill_n(totals[k], block.channels, 0.0);
  Multiversion([=]() ZG_VERSION {
    for (int64_t sample = 0; sample < block.samples; ++sample) {
      const int64_t row = sample * block.step;
      if (block.pixels == 1) {
        AddFeatures<kNumSums>(block, row, terms, totals);
      } else {
        AddChannels<kNumSums>(block, row, terms, totals);
      }
    }
  });
}

// Writes y[i] = formulas.At(channel)(i) for all elements of a block.
template <typename T, typename Formulas>
void Compute(const Images& block, const Formulas& formulas, T* y) {
  Multiversion([=]() ZG_VERSION {
    for (int64_t sample = 0; sample < block.samples; ++sample) {
      const int64_t row = sample * block.step;
      if (block.pixels == 1) {
        ZG_INDEPENDENT
        for (int64_t channel = 0; channel < block.channels; ++channel) {
          y[row + channel] = FromF32<T>(formulas.At(channel)(row + channel));
        }
        continue;
      }
      for (int64_t channel = 0; channel < block.channels; ++channel) {
        const auto formula = formulas.At(channel);
        const int64_t begin = row + channel * block.pixels;
        ZG_INDEPENDENT
        for (int64_t i = begin; i < begin + block.pixels; ++i) y[i] = FromF32<T>(formula(i));
      }
    }
  });
}

template <typename T>
struct Normalize {
  const T* x;
  const float* mean;
  const float* rstd;
  const float* gamma;
  const float* beta;

  ZG_INLINE auto At(int64_t c) const {
    return [ x = x, mean = mean[c], rstd = rstd[c], gamma = gamma[c], beta = beta[c] ](int64_t i)
        __attribute__((always_inline)) {
      return (ToF32(x[i]) - mean) * rstd * gamma + beta;
    };
  }
};

class BatchNorm : public Kernel {
 public:
  explicit BatchNorm(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype),
        images_(spec.call.inputs[0].shape),
        epsilon_(static_cast<float>(spec.call.attributes.Float("epsilon"))) {}

  Status Run(const KernelArguments& arguments) override {
    WithFloatType(dtype_, [&](auto zero) {
      ForBlocks(arguments.threads, images_, [&](int64_t first, const Images& block) {
        RunBlock<decltype(zero)>(arguments, first, block);
      });
    });
    return Status::Ok();
  }

 private:
  template <typename T>
  void RunBlock(const KernelArguments& arguments, int64_t first, const Images& block) const {
    const T* const x = arguments.input<T>(0) + first * block.pixels;
    T* const y = arguments.output<T>(0) + first * block.pixels;
    float* const mean = arguments.output<float>(1) + first;
    float* const variance = arguments.output<float>(2) + first;
    OfChannels<double> totals[1];
    Sum<1>(
        block,
        [x](const auto& load, const auto&, Lanes* sums)
            __attribute__((always_inline)) { sums[0] += load(x, 0.0f); },
        totals);
    for (int64_t c = 0; c < block.channels; ++c) {
      mean[c] = static_cast<float>(totals[0][c] / block.count());
    }
    Sum<1>(
        block,
        [ x, mean ](const auto& load, const auto& number, Lanes* sums)
            __attribute__((always_inline)) {
              const Lanes difference = load(x, number(mean)) - number(mean);
              sums[0] += difference * difference;
            },
        totals);
    OfChannels<float> rstd, gamma, beta;
    for (int64_t c = 0; c < block.channels; ++c) {
      variance[c] = static_cast<float>(totals[0][c] / block.count());
      rstd[c] = 1.0f / std::sqrt(variance[c] + epsilon_);
      gamma[c] = ToF32(arguments.input<T>(1)[first + c]);
      beta[c] = ToF32(arguments.input<T>(2)[first + c]);
    }
    Compute(block, Normalize<T>{x, mean, rstd, gamma, beta}, y);
  }

  const DType dtype_;
  const Images images_;
  const float epsilon_;
};

// dx = (dy - (mean_dy + n mean_dy_n)) scale.
template <typename T>
struct NormalizeGrad {
  const T* dy;
  const T* x;
  const float* mean;
  const float* rstd;
  const float* scale;
  const float* mean_dy;
  const float* mean_dy_n;

  ZG_INLINE auto At(int64_t c) const {
    return [
      dy = dy, x = x, mean = mean[c], rstd = rstd[c], scale = scale[c], mean_dy = mean_dy[c],
      mean_dy_n = mean_dy_n[c]
    ](int64_t i) __attribute__((always_inline)) {
      const float n = (ToF32(x[i]) - mean) * rstd;
      return (ToF32(dy[i]) - (mean_dy + n * mean_dy_n)) * scale;
    };
  }
};

// dx may be dy or x.
class BatchNormGrad : public Kernel {
 public:
  explicit BatchNormGrad(const KernelSpec& spec)
      : dtype_(spec.call.inputs[1].dtype),
        images_(spec.call.inputs[1].shape),
        epsilon_(static_cast<float>(spec.call.attributes.Float("epsilon"))) {}

  Status Run(const KernelArguments& arguments) override {
    WithFloatType(dtype_, [&](auto zero) {
      ForBlocks(arguments.threads, images_, [&](int64_t first, const Images& block) {
        RunBlock<decltype(zero)>(arguments, first, block);
      });
    });
    return Status::Ok();
  }

 private:
  template <typename T>
  void RunBlock(const KernelArguments& arguments, int64_t first, const Images& block) const {
    const T* const dy = arguments.input<T>(0) + first * block.pixels;
    const T* const x = arguments.input<T>(1) + first * block.pixels;
    const float* const mean = arguments.input<float>(3) + first;
    OfChannels<float> rstd, scale, mean_dy, mean_dy_n;
    for (int64_t c = 0; c < block.channels; ++c) {
      rstd[c] = 1.0f / std::sqrt(arguments.input<float>(4)[first + c] + epsilon_);
      scale[c] = ToF32(arguments.input<T>(2)[first + c]) * rstd[c];
    }
    OfChannels<double> totals[2];
    const float* const rstds = rstd;
    Sum<2>(
        block,
        [ dy, x, mean, rstds ](const auto& load, const auto& number, Lanes* sums)
            __attribute__((always_inline)) {
              const Lanes d = load(dy, 0.0f);
              sums[0] += d;
              sums[1] += d * ((load(x, number(mean)) - number(mean)) * number(rstds));
            },
        totals);
    for (int64_t c = 0; c < block.channels; ++c) {
      mean_dy[c] = static_cast<float>(totals[0][c] / block.count());
      mean_dy_n[c] = static_cast<float>(totals[1][c] / block.count());
      arguments.output<T>(1)[first + c] = FromF32<T>(static_cast<float>(totals[1][c]));
      arguments.output<T>(2)[first + c] = FromF32<T>(static_cast<float>(totals[0][c]));
    }
    Compute(block, NormalizeGrad<T>{dy, x, mean, rstd, scale, mean_dy, mean_dy_n},
            arguments.output<T>(0) + first * block.pixels);
  }

  const DType dtype_;
  const Images images_;
  const float epsilon_;
};

}  // namespace

void RegisterBatchNormKernels(KernelRegistry& registry) {
  registry.Register("batch_norm", MakeKernel<BatchNorm>);
  registry.Register("batch_norm_grad", MakeKernel<BatchNormGrad>);
}

}  // namespace zg
