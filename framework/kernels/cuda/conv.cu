// Convolutions as cuBLASLt products with a matrix of windows, which is built in the workspace for
// as many samples at once as a memory limit allows.
#include <algorithm>
#include <memory>
#include <utility>

#include "framework/kernels/conv_shape.h"
#include "framework/kernels/cuda/matmul.h"
#include "framework/kernels/cuda/packs.cuh"

namespace zg::cuda {
namespace {

constexpr int64_t kMaxWindowBytes = int64_t{256} << 20;

int64_t Aligned(int64_t bytes) { return CeilDivide(bytes, 256) * 256; }

// The number of samples processed at once: a divisor of the batch.
int64_t SamplesAtOnce(int64_t batch, int64_t bytes_of_sample) {
  int64_t samples = std::max<int64_t>(1, std::min(batch, kMaxWindowBytes / bytes_of_sample));
  while (batch % samples != 0) --samples;
  return samples;
}

// windows[(channel, tap), (sample, pixel)] of one group, for pixels of y from x, or with `to_input`
// for pixels of dx from dy; zeros where a tap reads no pixel.
template <typename T>
struct WindowsBody {
  const T* source;  // of the first sample and the group
  T* windows;
  ConvShape shape;
  int64_t sample_step;  // elements between samples of the source
  int64_t samples;
  bool to_input;

  // The position of the pixel's tap along a dim of the source; -1: outside.
  __device__ int64_t Meet(int dim, int64_t pixel, int64_t tap) const {
    if (!to_input) {
      const int64_t at = pixel * shape.stride[dim] + tap * shape.dilation[dim] - shape.padding[dim];
      return at >= 0 && at < shape.in[dim] ? at : -1;
    }
    const int64_t distance = pixel + shape.padding[dim] - tap * shape.dilation[dim];
    if (distance < 0 || distance % shape.stride[dim] != 0) return -1;
    const int64_t at = distance / shape.stride[dim];
    return at < shape.out[dim] ? at : -1;
  }

  template <int kCount>
  __device__ void Run(int64_t index) const {
    const int64_t* const result = to_input ? shape.in : shape.out;
    const int64_t* const from = to_input ? shape.out : shape.in;
    const int64_t pixel = index % (result[0] * result[1]);
    const int64_t column = index / (result[0] * result[1]);
    const int64_t row = column / samples;
    const int64_t tap = row % (shape.kernel[0] * shape.kernel[1]);
    const int64_t channel = row / (shape.kernel[0] * shape.kernel[1]);
    const int64_t h = Meet(0, pixel / result[1], tap / shape.kernel[1]);
    const int64_t w = Meet(1, pixel % result[1], tap % shape.kernel[1]);
    T value = Round<T>(0.0f);
    if (h >= 0 && w >= 0) {
      value = source[column % samples * sample_step + (channel * from[0] + h) * from[1] + w];
    }
    windows[index] = value;
  }
};

// to[c, s, p] = from[s, c, p], or the reverse with `back`, plus bias[c] if it is not null.
template <typename T>
struct ChannelsBody {
  const T* from;
  const T* bias;
  T* to;
  int64_t channels;
  int64_t samples;
  int64_t pixels;
  int64_t sample_step;  // elements between samples of the images
  bool back;

  template <int kCount>
  __device__ void Run(int64_t index) const {
    const int64_t pixel = index % pixels;
    const int64_t sample = index / pixels % samples;
    const int64_t channel = index / pixels / samples;
    const int64_t image = sample * sample_step + channel * pixels + pixel;
    if (!back) {
      to[index] = from[image];
    } else if (bias == nullptr) {
      to[image] = from[index];
    } else {
      to[image] = Round<T>(Widen(from[index]) + Widen(bias[channel]));
    }
  }
};

// to[c, o, t] = from[o, c, t].
template <typename T>
struct WeightsBody {
  const T* from;
  T* to;
  int64_t outputs;
  int64_t channels;
  int64_t taps;

  template <int kCount>
  __device__ void Run(int64_t index) const {
    const int64_t tap = index % taps;
    const int64_t output = index / taps % outputs;
    const int64_t channel = index / taps / outputs;
    to[index] = from[(output * channels + channel) * taps + tap];
  }
};

// to[i] = the sum over parts of from[part, i].
template <typename T>
struct PartsBody {
  const T* from;
  T* to;
  int64_t parts;
  int64_t count;

  template <int kCount>
  __device__ void Run(int64_t index) const {
    float sum = 0.0f;
    for (int64_t part = 0; part < parts; ++part) sum += Widen(from[part * count + index]);
    to[index] = Round<T>(sum);
  }
};

template <typename Body>
Status RunEach(const Body& body, int64_t count, void* stream) {
  return RunPacks<1>(body, true, count, stream);
}

StatusOr<std::unique_ptr<Matmul>> MakeProduct(const KernelSpec& spec, MatmulShape shape,
                                              bool tf32) {
  ZG_RETURN_IF_ERROR(CheckCudaTypes(spec));
  shape.dtype = spec.outputs[0].dtype;
  shape.tf32 = tf32;
  return Matmul::Make(shape, spec.gemm_choices);
}

// y from x, or dx from dy.
class WindowProduct : public Kernel {
 public:
  struct Sizes {
    Sizes(const ConvShape& conv, DType dtype, bool is_to_input)
        : shape(conv),
          to_input(is_to_input),
          source_channels(to_input ? conv.outputs : conv.channels),
          result_channels(to_input ? conv.channels : conv.outputs),
          source_pixels(to_input ? conv.out_pixels() : conv.in_pixels()),
          result_pixels(to_input ? conv.in_pixels() : conv.out_pixels()),
          depth(source_channels * conv.taps()),
          samples(SamplesAtOnce(conv.batch, depth * result_pixels * SizeOf(dtype))) {}

    ConvShape shape;
    bool to_input;
    int64_t source_channels;
    int64_t result_channels;
    int64_t source_pixels;
    int64_t result_pixels;
    int64_t depth;
    int64_t samples;  // processed at once
  };

  WindowProduct(const KernelSpec& spec, const Sizes& sizes, std::unique_ptr<Matmul> matmul)
      : dtype_(spec.outputs[0].dtype),
        has_bias_(spec.call.inputs.size() == 3),
        sizes_(sizes),
        matmul_(std::move(matmul)) {}

  static StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec, const Sizes& sizes,
                                                bool tf32) {
    MatmulShape product;
    product.rows = sizes.result_channels;
    product.columns = sizes.samples * sizes.result_pixels;
    product.depth = sizes.depth;
    ZG_ASSIGN_OR_RETURN(std::unique_ptr<Matmul> matmul, MakeProduct(spec, product, tf32));
    return std::unique_ptr<Kernel>(std::make_unique<WindowProduct>(spec, sizes, std::move(matmul)));
  }

  int64_t workspace_bytes() const override {
    return WindowBytes() + ResultBytes() + WeightBytes() + matmul_->workspace_bytes();
  }

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) { return RunOn<decltype(zero)>(arguments); });
  }

 private:
  int64_t weights() const { return sizes_.result_channels * sizes_.depth; }
  int64_t WindowBytes() const {
    return Aligned(sizes_.depth * sizes_.samples * sizes_.result_pixels * SizeOf(dtype_));
  }
  int64_t ResultBytes() const {
    return Aligned(sizes_.result_channels * sizes_.samples * sizes_.result_pixels * SizeOf(dtype_));
  }
  int64_t WeightBytes() const { return sizes_.to_input ? Aligned(weights() * SizeOf(dtype_)) : 0; }

  template <typename T>
  Status RunOn(const KernelArguments& arguments) {
    const ConvShape& shape = sizes_.shape;
    char* const workspace = static_cast<char*>(arguments.workspace);
    T* const windows = reinterpret_cast<T*>(workspace);
    T* const product = reinterpret_cast<T*>(workspace + WindowBytes());
    T* const turned = reinterpret_cast<T*>(workspace + WindowBytes() + ResultBytes());
    char* const rest = workspace + WindowBytes() + ResultBytes() + WeightBytes();
    const int64_t of_source = sizes_.source_channels * sizes_.source_pixels;
    const int64_t of_result = sizes_.result_channels * sizes_.result_pixels;
    for (int64_t group = 0; group < shape.groups; ++group) {
      const T* weight = arguments.input<T>(1) + group * weights();
      if (sizes_.to_input) {
        ZG_RETURN_IF_ERROR(
            RunEach(WeightsBody<T>{weight, turned, shape.outputs, shape.channels, shape.taps()},
                    weights(), arguments.stream));
        weight = turned;
      }
      for (int64_t first = 0; first < shape.batch; first += sizes_.samples) {
        const int64_t part = first * shape.groups + group;
        ZG_RETURN_IF_ERROR(
            RunEach(WindowsBody<T>{arguments.input<T>(0) + part * of_source, windows, shape,
                                   shape.groups * of_source, sizes_.samples, sizes_.to_input},
                    sizes_.depth * sizes_.samples * sizes_.result_pixels, arguments.stream));
        ZG_RETURN_IF_ERROR(
            matmul_->Run({weight, windows, nullptr, product}, rest, arguments.stream));
        const T* const bias =
            has_bias_ ? arguments.input<T>(2) + group * sizes_.result_channels : nullptr;
        ZG_RETURN_IF_ERROR(
            RunEach(ChannelsBody<T>{product, bias, arguments.output<T>(0) + part * of_result,
                                    sizes_.result_channels, sizes_.samples, sizes_.result_pixels,
                                    shape.groups * of_result, /*back=*/true},
                    sizes_.samples * of_result, arguments.stream));
      }
    }
    return Status::Ok();
  }

  const DType dtype_;
  const bool has_bias_;
  const Sizes sizes_;
  const std::unique_ptr<Matmul> matmul_;
};

// dw from dy and x: a product for each part of the batch, then their sum.
class WindowGradWeight : public Kernel {
 public:
  WindowGradWeight(const KernelSpec& spec, int64_t samples, std::unique_ptr<Matmul> matmul)
      : dtype_(spec.outputs[0].dtype),
        shape_(ConvShape::OfGradWeight(spec)),
        samples_(samples),
        matmul_(std::move(matmul)) {}

  static StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec, bool tf32) {
    const ConvShape shape = ConvShape::OfGradWeight(spec);
    const int64_t depth = shape.channels * shape.taps();
    const int64_t samples =
        SamplesAtOnce(shape.batch, depth * shape.out_pixels() * SizeOf(spec.outputs[0].dtype));
    MatmulShape product;
    product.rows = shape.outputs;
    product.columns = depth;
    product.depth = samples * shape.out_pixels();
    product.transpose_b = true;
    ZG_ASSIGN_OR_RETURN(std::unique_ptr<Matmul> matmul, MakeProduct(spec, product, tf32));
    return std::unique_ptr<Kernel>(
        std::make_unique<WindowGradWeight>(spec, samples, std::move(matmul)));
  }

  int64_t workspace_bytes() const override {
    return WindowBytes() + GradientBytes() + PartBytes() + matmul_->workspace_bytes();
  }

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) { return RunOn<decltype(zero)>(arguments); });
  }

 private:
  int64_t depth() const { return shape_.channels * shape_.taps(); }
  int64_t parts() const { return shape_.batch / samples_; }
  int64_t weights() const { return shape_.outputs * depth(); }
  int64_t WindowBytes() const {
    return Aligned(depth() * samples_ * shape_.out_pixels() * SizeOf(dtype_));
  }
  int64_t GradientBytes() const {
    return Aligned(shape_.outputs * samples_ * shape_.out_pixels() * SizeOf(dtype_));
  }
  int64_t PartBytes() const { return Aligned(parts() * weights() * SizeOf(dtype_)); }

  template <typename T>
  Status RunOn(const KernelArguments& arguments) {
    char* const workspace = static_cast<char*>(arguments.workspace);
    T* const windows = reinterpret_cast<T*>(workspace);
    T* const gradient = reinterpret_cast<T*>(workspace + WindowBytes());
    T* const sums = reinterpret_cast<T*>(workspace + WindowBytes() + GradientBytes());
    char* const rest = workspace + WindowBytes() + GradientBytes() + PartBytes();
    const int64_t of_dy = shape_.outputs * shape_.out_pixels();
    const int64_t of_x = shape_.channels * shape_.in_pixels();
    for (int64_t group = 0; group < shape_.groups; ++group) {
      for (int64_t part = 0; part < parts(); ++part) {
        const int64_t first = part * samples_ * shape_.groups + group;
        ZG_RETURN_IF_ERROR(RunEach(
            ChannelsBody<T>{arguments.input<T>(0) + first * of_dy, nullptr, gradient,
                            shape_.outputs, samples_, shape_.out_pixels(), shape_.groups * of_dy,
                            /*back=*/false},
            samples_ * of_dy, arguments.stream));
        ZG_RETURN_IF_ERROR(
            RunEach(WindowsBody<T>{arguments.input<T>(1) + first * of_x, windows, shape_,
                                   shape_.groups * of_x, samples_, /*to_input=*/false},
                    depth() * samples_ * shape_.out_pixels(), arguments.stream));
        ZG_RETURN_IF_ERROR(matmul_->Run({gradient, windows, nullptr, sums + part * weights()}, rest,
                                        arguments.stream));
      }
      ZG_RETURN_IF_ERROR(RunEach(
          PartsBody<T>{sums, arguments.output<T>(0) + group * weights(), parts(), weights()},
          weights(), arguments.stream));
    }
    return Status::Ok();
  }

  const DType dtype_;
  const ConvShape shape_;
  const int64_t samples_;
  const std::unique_ptr<Matmul> matmul_;
};

template <bool kTf32>
StatusOr<std::unique_ptr<Kernel>> MakeConv(const KernelSpec& spec) {
  const WindowProduct::Sizes sizes(ConvShape::OfForward(spec), spec.outputs[0].dtype, false);
  return WindowProduct::Make(spec, sizes, kTf32);
}

template <bool kTf32>
StatusOr<std::unique_ptr<Kernel>> MakeGradInput(const KernelSpec& spec) {
  const WindowProduct::Sizes sizes(ConvShape::OfGradInput(spec), spec.outputs[0].dtype, true);
  return WindowProduct::Make(spec, sizes, kTf32);
}

template <bool kTf32>
StatusOr<std::unique_ptr<Kernel>> MakeGradWeight(const KernelSpec& spec) {
  return WindowGradWeight::Make(spec, kTf32);
}

template <bool kTf32>
void RegisterConv(KernelRegistry& registry) {
  registry.Register("conv2d", MakeConv<kTf32>);
  registry.Register("conv2d_grad_input", MakeGradInput<kTf32>);
  registry.Register("conv2d_grad_weight", MakeGradWeight<kTf32>);
}

}  // namespace

void RegisterConvKernels(KernelRegistry& registry) {
  if (registry.options().tf32) {
    RegisterConv<true>(registry);
  } else {
    RegisterConv<false>(registry);
  }
}

}  // namespace zg::cuda
