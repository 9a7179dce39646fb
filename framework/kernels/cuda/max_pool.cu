#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/pool_shape.h"

namespace zg::cuda {
namespace {

template <typename T>
struct MaxPoolBody {
  const T* x;
  T* y;
  PoolShape shape;

  template <int kCount>
  __device__ void Run(int64_t index) const {
    const int64_t pixel = index % (shape.out[0] * shape.out[1]);
    const T* const plane = x + index / (shape.out[0] * shape.out[1]) * shape.in[0] * shape.in[1];
    y[index] = Round<T>(shape.LargestOf(plane, pixel / shape.out[1], pixel % shape.out[1]).value);
  }
};

// A thread computes an element of dx, and reads the windows that contain it.
template <typename T>
struct MaxPoolGradBody {
  const T* dy;
  const T* x;
  T* dx;
  PoolShape shape;

  // The first pixel of y along a dim whose window reaches `at`.
  __device__ int64_t First(int dim, int64_t at) const {
    const int64_t reach = at + shape.padding[dim] - shape.dilation[dim] * (shape.kernel[dim] - 1);
    return reach <= 0 ? 0 : (reach + shape.stride[dim] - 1) / shape.stride[dim];
  }
  // One past the last such pixel.
  __device__ int64_t End(int dim, int64_t at) const {
    const int64_t end = (at + shape.padding[dim]) / shape.stride[dim] + 1;
    return end < shape.out[dim] ? end : shape.out[dim];
  }

  template <int kCount>
  __device__ void Run(int64_t index) const {
    const int64_t pixel = index % (shape.in[0] * shape.in[1]);
    const int64_t number = index / (shape.in[0] * shape.in[1]);
    const T* const plane = x + number * shape.in[0] * shape.in[1];
    const T* const gradients = dy + number * shape.out[0] * shape.out[1];
    const int64_t h = pixel / shape.in[1];
    const int64_t w = pixel % shape.in[1];
    float sum = 0.0f;
    for (int64_t i = First(0, h); i < End(0, h); ++i) {
      for (int64_t j = First(1, w); j < End(1, w); ++j) {
        if (shape.LargestOf(plane, i, j).index == pixel) {
          sum += Widen(gradients[i * shape.out[1] + j]);
        }
      }
    }
    dx[index] = Round<T>(sum);
  }
};

class MaxPool2d : public Kernel {
 public:
  explicit MaxPool2d(const KernelSpec& spec)
      : type_(spec.outputs[0]),
        shape_(spec.call.attributes, spec.call.inputs[0].shape, spec.outputs[0].shape) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(type_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const MaxPoolBody<T> body = {arguments.input<T>(0), arguments.output<T>(0), shape_};
      return RunPacks<1>(body, true, type_.shape.num_elements(), arguments.stream);
    });
  }

 private:
  const TensorType type_;
  const PoolShape shape_;
};

class MaxPool2dGrad : public Kernel {
 public:
  explicit MaxPool2dGrad(const KernelSpec& spec)
      : type_(spec.outputs[0]),
        shape_(spec.call.attributes, spec.call.inputs[1].shape, spec.call.inputs[0].shape) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(type_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const MaxPoolGradBody<T> body = {arguments.input<T>(0), arguments.input<T>(1),
                                       arguments.output<T>(0), shape_};
      return RunPacks<1>(body, true, type_.shape.num_elements(), arguments.stream);
    });
  }

 private:
  const TensorType type_;
  const PoolShape shape_;
};

}  // namespace

void RegisterMaxPoolKernels(KernelRegistry& registry) {
  registry.Register("max_pool2d", MakeKernel<MaxPool2d>);
  registry.Register("max_pool2d_grad", MakeKernel<MaxPool2dGrad>);
}

}  // namespace zg::cuda
