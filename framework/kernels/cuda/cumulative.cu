#include "framework/kernels/cuda/dim_path.cuh"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/dim_view.h"
#include "framework/kernels/math/cumulative_math.h"

namespace zg::cuda {
namespace {

// In both kernels a thread processes the elements along the dim.
template <typename T>
struct CumulativeArgmaxBody {
  const T* x;
  int64_t* y;
  DimPath path;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
#pragma unroll
    for (int c = 0; c < kCount; ++c) {
      float largest = 0.0f;
      int64_t position = 0;
      int64_t at = path.First(begin + c);
      for (int64_t i = 0; i < path.size; ++i, at += path.Step()) {
        const float value = Widen(x[at]);
        if (i == 0 || IsNewMaximum(value, largest)) {
          largest = value;
          position = i;
        }
        y[at] = position;
      }
    }
  }
};

class CumulativeArgmax : public Kernel {
 public:
  explicit CumulativeArgmax(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype),
        x_(spec.outputs[0].shape, spec.call.attributes.Int("dim")) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const CumulativeArgmaxBody<T> body = {
          arguments.input<T>(0), arguments.output<int64_t>(0), {x_.size, x_.inner, false}};
      return RunPacks<1>(body, true, x_.outer * x_.inner, arguments.stream);
    });
  }

 private:
  const DType dtype_;
  const DimView x_;
};

// y may be x.
template <typename T>
struct LogCumsumExpBody {
  const T* x;
  T* y;
  DimPath path;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
#pragma unroll
    for (int c = 0; c < kCount; ++c) {
      float sum = -__builtin_inff();
      int64_t at = path.First(begin + c);
      for (int64_t i = 0; i < path.size; ++i, at += path.Step()) {
        sum = LogAddExp(sum, Widen(x[at]));
        y[at] = Round<T>(sum);
      }
    }
  }
};

class LogCumsumExp : public Kernel {
 public:
  explicit LogCumsumExp(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        x_(spec.outputs[0].shape, spec.call.attributes.Int("dim")),
        reverse_(spec.call.attributes.Bool("reverse")) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const LogCumsumExpBody<T> body = {
          arguments.input<T>(0), arguments.output<T>(0), {x_.size, x_.inner, reverse_}};
      return RunPacks<1>(body, true, x_.outer * x_.inner, arguments.stream);
    });
  }

 private:
  const DType dtype_;
  const DimView x_;
  const bool reverse_;
};

}  // namespace

void RegisterCumulativeKernels(KernelRegistry& registry) {
  registry.Register("cumulative_argmax", MakeKernel<CumulativeArgmax>);
  registry.Register("logcumsumexp", MakeKernel<LogCumsumExp>);
}

}  // namespace zg::cuda
