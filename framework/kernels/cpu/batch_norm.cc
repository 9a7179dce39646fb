#include <cmath>
#include <cstdint>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// x (samples, channels, pixels).
struct Images {
  explicit Images(const Shape& shape) : samples(shape.dim(0)), channels(shape.dim(1)) {
    for (int dim = 2; dim < shape.num_dims(); ++dim) pixels *= shape.dim(dim);
  }
  int64_t samples;
  int64_t channels;
  int64_t pixels = 1;

  int64_t step() const {
    return channels * pixels;
  }  // from a sample's row of a channel to the next
  float count() const { return static_cast<float>(samples * pixels); }
};

// The sums of a channel: f32 within each sample's row, f64 across rows.
template <typename T>
double SumOf(const T* x, Images images, float mean, bool squares) {
  return Multiversion([=]() ZG_VERSION {
    double total = 0.0;
    for (int64_t sample = 0; sample < images.samples; ++sample) {
      const T* const row = x + sample * images.step();
      if (squares) {
        total += SumTerms(
            images.pixels, [=](const auto& load) __attribute__((always_inline)) {
              const Lanes difference = load(row, mean) - mean;
              return difference * difference;
            });
      } else {
        total += SumTerms(
            images.pixels, [=](const auto& load)
                               __attribute__((always_inline)) { return load(row, 0.0f); });
      }
    }
    return total;
  });
}

// y = x factor + offset.
template <typename T>
void Normalize(const T* x, Images images, float mean, float rstd, float gamma, float beta, T* y) {
  Multiversion([=]() ZG_VERSION {
    for (int64_t sample = 0; sample < images.samples; ++sample) {
      const T* const from = x + sample * images.step();
      T* const to = y + sample * images.step();
      ZG_INDEPENDENT
      for (int64_t i = 0; i < images.pixels; ++i) {
        to[i] = FromF32<T>((ToF32(from[i]) - mean) * rstd * gamma + beta);
      }
    }
  });
}

class BatchNorm : public Kernel {
 public:
  explicit BatchNorm(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype),
        images_(spec.call.inputs[0].shape),
        epsilon_(static_cast<float>(spec.call.attributes.Float("epsilon"))) {}

  Status Run(const KernelArguments& arguments) override {
    WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      ForRanges(arguments.threads, images_.channels, 1, 2 * images_.samples * images_.pixels,
                [&](int64_t begin, int64_t end, int) {
                  for (; begin < end; ++begin) RunChannel<T>(arguments, begin);
                });
    });
    return Status::Ok();
  }

 private:
  template <typename T>
  void RunChannel(const KernelArguments& arguments, int64_t channel) const {
    const T* const x = arguments.input<T>(0) + channel * images_.pixels;
    const auto mean = static_cast<float>(SumOf(x, images_, 0.0f, false) / images_.count());
    const auto variance = static_cast<float>(SumOf(x, images_, mean, true) / images_.count());
    arguments.output<float>(1)[channel] = mean;
    arguments.output<float>(2)[channel] = variance;
    Normalize(x, images_, mean, 1.0f / std::sqrt(variance + epsilon_),
              ToF32(arguments.input<T>(1)[channel]), ToF32(arguments.input<T>(2)[channel]),
              arguments.output<T>(0) + channel * images_.pixels);
  }

  const DType dtype_;
  const Images images_;
  const float epsilon_;
};

struct GradientSums {
  double dy = 0.0;
  double dy_n = 0.0;
};

template <typename T>
GradientSums SumGradients(const T* dy, const T* x, Images images, float mean, float rstd) {
  return Multiversion([=]() ZG_VERSION {
    GradientSums total;
    for (int64_t sample = 0; sample < images.samples; ++sample) {
      const T* const gradients = dy + sample * images.step();
      const T* const row = x + sample * images.step();
      float sums[2];
      SumManyTerms<2>(
          images.pixels,
          [=](const auto& load, Lanes* sum) __attribute__((always_inline)) {
            const Lanes d = load(gradients, 0.0f);
            sum[0] += d;
            sum[1] += d * ((load(row, mean) - mean) * rstd);
          },
          sums);
      total.dy += sums[0];
      total.dy_n += sums[1];
    }
    return total;
  });
}

// dx = (dy - (mean_dy + n mean_dy_n)) scale. `dx` may be `dy` or `x`.
template <typename T>
struct NormalizeGrad {
  const T* dy;
  const T* x;
  T* dx;
  float mean;
  float rstd;
  float scale;
  float mean_dy;
  float mean_dy_n;

  void Run(Images images) const {
    Multiversion([g = *this, images]() ZG_VERSION {
      for (int64_t sample = 0; sample < images.samples; ++sample) {
        const int64_t offset = sample * images.step();
        ZG_INDEPENDENT
        for (int64_t i = offset; i < offset + images.pixels; ++i) {
          const float n = (ToF32(g.x[i]) - g.mean) * g.rstd;
          g.dx[i] = FromF32<T>((ToF32(g.dy[i]) - (g.mean_dy + n * g.mean_dy_n)) * g.scale);
        }
      }
    });
  }
};

class BatchNormGrad : public Kernel {
 public:
  explicit BatchNormGrad(const KernelSpec& spec)
      : dtype_(spec.call.inputs[1].dtype),
        images_(spec.call.inputs[1].shape),
        epsilon_(static_cast<float>(spec.call.attributes.Float("epsilon"))) {}

  Status Run(const KernelArguments& arguments) override {
    WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      ForRanges(arguments.threads, images_.channels, 1, 2 * images_.samples * images_.pixels,
                [&](int64_t begin, int64_t end, int) {
                  for (; begin < end; ++begin) RunChannel<T>(arguments, begin);
                });
    });
    return Status::Ok();
  }

 private:
  template <typename T>
  void RunChannel(const KernelArguments& arguments, int64_t channel) const {
    const int64_t offset = channel * images_.pixels;
    NormalizeGrad<T> gradient;
    gradient.dy = arguments.input<T>(0) + offset;
    gradient.x = arguments.input<T>(1) + offset;
    gradient.dx = arguments.output<T>(0) + offset;
    gradient.mean = arguments.input<float>(3)[channel];
    gradient.rstd = 1.0f / std::sqrt(arguments.input<float>(4)[channel] + epsilon_);
    gradient.scale = ToF32(arguments.input<T>(2)[channel]) * gradient.rstd;
    const GradientSums sums =
        SumGradients(gradient.dy, gradient.x, images_, gradient.mean, gradient.rstd);
    gradient.mean_dy = static_cast<float>(sums.dy / images_.count());
    gradient.mean_dy_n = static_cast<float>(sums.dy_n / images_.count());
    arguments.output<T>(1)[channel] = FromF32<T>(static_cast<float>(sums.dy_n));
    arguments.output<T>(2)[channel] = FromF32<T>(static_cast<float>(sums.dy));
    gradient.Run(images_);
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
