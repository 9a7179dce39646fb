#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/cuda/reduce.cuh"

namespace zg::cuda {
namespace {

// x (samples, channels, pixels); a block processes a channel.
struct Images {
  explicit Images(const Shape& shape) : samples(shape.dim(0)), channels(shape.dim(1)) {
    for (int dim = 2; dim < shape.num_dims(); ++dim) pixels *= shape.dim(dim);
  }
  int64_t samples;
  int64_t channels;
  int64_t pixels = 1;

  __device__ int64_t count() const { return samples * pixels; }
  // The offset of the element `index` of the block's channel.
  __device__ int64_t At(int64_t index) const {
    return (index / pixels * channels + blockIdx.x) * pixels + index % pixels;
  }
  LaunchShape Blocks() const { return {dim3(static_cast<unsigned>(channels))}; }
};

template <typename T>
struct BatchNormArrays {
  const T* x;
  const T* gamma;
  const T* beta;
  T* y;
  float* mean;
  float* variance;
};

template <typename T>
__global__ void BatchNormKernel(BatchNormArrays<T> arrays, Images images, float epsilon) {
  const float size = static_cast<float>(images.count());
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < images.count(); i += kThreads) {
    sum += Widen(arrays.x[images.At(i)]);
  }
  const float mean = BlockSum(sum) / size;
  float squares = 0.0f;
  for (int64_t i = threadIdx.x; i < images.count(); i += kThreads) {
    const float difference = Widen(arrays.x[images.At(i)]) - mean;
    squares += difference * difference;
  }
  const float variance = BlockSum(squares) / size;
  const float rstd = 1.0f / sqrtf(variance + epsilon);
  const float gamma = Widen(arrays.gamma[blockIdx.x]);
  const float beta = Widen(arrays.beta[blockIdx.x]);
  for (int64_t i = threadIdx.x; i < images.count(); i += kThreads) {
    const int64_t at = images.At(i);
    arrays.y[at] = Round<T>((Widen(arrays.x[at]) - mean) * rstd * gamma + beta);
  }
  if (threadIdx.x == 0) {
    arrays.mean[blockIdx.x] = mean;
    arrays.variance[blockIdx.x] = variance;
  }
}

class BatchNorm : public Kernel {
 public:
  explicit BatchNorm(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype),
        images_(spec.call.inputs[0].shape),
        epsilon_(static_cast<float>(spec.call.attributes.Float("epsilon"))) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const BatchNormArrays<T> arrays = {arguments.input<T>(0),      arguments.input<T>(1),
                                         arguments.input<T>(2),      arguments.output<T>(0),
                                         arguments.output<float>(1), arguments.output<float>(2)};
      return Launch(BatchNormKernel<T>, images_.Blocks(), arguments.stream, arrays, images_,
                    epsilon_);
    });
  }

 private:
  const DType dtype_;
  const Images images_;
  const float epsilon_;
};

template <typename T>
struct BatchNormGradArrays {
  const T* dy;
  const T* x;
  const T* gamma;
  const float* mean;
  const float* variance;
  T* dx;
  T* dgamma;
  T* dbeta;
};

// `dx` may be `dy` or `x`: the thread that writes an element is the last to read it.
template <typename T>
__global__ void BatchNormGradKernel(BatchNormGradArrays<T> arrays, Images images, float epsilon) {
  const float size = static_cast<float>(images.count());
  const float mean = arrays.mean[blockIdx.x];
  const float rstd = 1.0f / sqrtf(arrays.variance[blockIdx.x] + epsilon);
  float sum_dy = 0.0f;
  float sum_dy_n = 0.0f;
  for (int64_t i = threadIdx.x; i < images.count(); i += kThreads) {
    const int64_t at = images.At(i);
    const float dy = Widen(arrays.dy[at]);
    sum_dy += dy;
    sum_dy_n += dy * ((Widen(arrays.x[at]) - mean) * rstd);
  }
  const float dbeta = BlockSum(sum_dy);
  const float dgamma = BlockSum(sum_dy_n);
  const float mean_dy = dbeta / size;
  const float mean_dy_n = dgamma / size;
  const float scale = Widen(arrays.gamma[blockIdx.x]) * rstd;
  for (int64_t i = threadIdx.x; i < images.count(); i += kThreads) {
    const int64_t at = images.At(i);
    const float n = (Widen(arrays.x[at]) - mean) * rstd;
    arrays.dx[at] = Round<T>((Widen(arrays.dy[at]) - (mean_dy + n * mean_dy_n)) * scale);
  }
  if (threadIdx.x == 0) {
    arrays.dgamma[blockIdx.x] = Round<T>(dgamma);
    arrays.dbeta[blockIdx.x] = Round<T>(dbeta);
  }
}

class BatchNormGrad : public Kernel {
 public:
  explicit BatchNormGrad(const KernelSpec& spec)
      : dtype_(spec.call.inputs[1].dtype),
        images_(spec.call.inputs[1].shape),
        epsilon_(static_cast<float>(spec.call.attributes.Float("epsilon"))) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const BatchNormGradArrays<T> arrays = {arguments.input<T>(0),     arguments.input<T>(1),
                                             arguments.input<T>(2),     arguments.input<float>(3),
                                             arguments.input<float>(4), arguments.output<T>(0),
                                             arguments.output<T>(1),    arguments.output<T>(2)};
      return Launch(BatchNormGradKernel<T>, images_.Blocks(), arguments.stream, arrays, images_,
                    epsilon_);
    });
  }

 private:
  const DType dtype_;
  const Images images_;
  const float epsilon_;
};

}  // namespace

void RegisterBatchNormKernels(KernelRegistry& registry) {
  registry.Register("batch_norm", MakeKernel<BatchNorm>);
  registry.Register("batch_norm_grad", MakeKernel<BatchNormGrad>);
}

}  // namespace zg::cuda
