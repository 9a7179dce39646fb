#include <string>

#include "framework/kernels/cuda/index_fault.cuh"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/dim_view.h"

namespace zg::cuda {
namespace {

struct IotaBody {
  int64_t* y;
  int64_t start, step;
  template <int kCount>
  __device__ void Run(int64_t begin) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) y[begin + i] = start + (begin + i) * step;
  }
};

class Iota : public Kernel {
 public:
  explicit Iota(const KernelSpec& spec)
      : size_(spec.call.attributes.Int("size")),
        start_(spec.call.attributes.Int("start")),
        step_(spec.call.attributes.Int("step")) {}

  Status Run(const KernelArguments& arguments) override {
    const IotaBody body = {arguments.output<int64_t>(0), start_, step_};
    return RunPacks<1>(body, true, size_, arguments.stream);
  }

 private:
  const int64_t size_;
  const int64_t start_;
  const int64_t step_;
};

template <typename T>
struct GatherBody {
  const T* x;
  const int64_t* index;
  T* y;
  int64_t x_size, y_size, inner;
  FaultSink faults;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int64_t at = begin + i;
      const int64_t from = index[at];
      if (from < 0 || from >= x_size) {
        faults.Record(from, x_size);
        continue;
      }
      y[at] = x[(at / (y_size * inner) * x_size + from) * inner + at % inner];
    }
  }
};

class Gather : public Kernel {
 public:
  explicit Gather(const KernelSpec& spec)
      : x_(spec.call.inputs[0].shape, spec.call.attributes.Int("dim")),
        y_(spec.outputs[0].shape, spec.call.attributes.Int("dim")),
        bytes_(SizeOf(spec.outputs[0].dtype)),
        num_elements_(spec.outputs[0].shape.num_elements()) {}

  Status Run(const KernelArguments& arguments) override {
    return WithElements(bytes_, [&](auto zero) {
      using T = decltype(zero);
      const GatherBody<T> body = {arguments.input<T>(0),
                                  arguments.input<int64_t>(1),
                                  arguments.output<T>(0),
                                  x_.size,
                                  y_.size,
                                  y_.inner,
                                  FaultSinkOf(arguments)};
      return RunPacks<1>(body, true, num_elements_, arguments.stream);
    });
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return IndexFaultText("gather", fault);
  }

 private:
  const DimView x_;
  const DimView y_;
  const int64_t bytes_;
  const int64_t num_elements_;
};

// A thread computes an element of the result, and searches all indices of its column for it.
template <typename T>
struct GatherGradBody {
  const T* dy;
  const int64_t* index;
  T* dx;
  int64_t dy_size, dx_size, inner;
  FaultSink faults;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int64_t own = (begin + i) / inner % dx_size;
      const int64_t outer = (begin + i) / inner / dx_size;
      const int64_t column = outer * dy_size * inner + (begin + i) % inner;
      float sum = 0.0f;
      for (int64_t s = 0; s < dy_size; ++s) {
        const int64_t to = index[column + s * inner];
        if (own == 0 && (to < 0 || to >= dx_size)) faults.Record(to, dx_size);
        if (to == own) sum += Widen(dy[column + s * inner]);
      }
      dx[begin + i] = Round<T>(sum);
    }
  }
};

class GatherGrad : public Kernel {
 public:
  explicit GatherGrad(const KernelSpec& spec)
      : type_(spec.outputs[0]),
        dy_(spec.call.inputs[0].shape, spec.call.attributes.Int("dim")),
        dx_(spec.outputs[0].shape, spec.call.attributes.Int("dim")) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(type_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const GatherGradBody<T> body = {arguments.input<T>(0),
                                      arguments.input<int64_t>(1),
                                      arguments.output<T>(0),
                                      dy_.size,
                                      dx_.size,
                                      dx_.inner,
                                      FaultSinkOf(arguments)};
      return RunPacks<1>(body, true, type_.shape.num_elements(), arguments.stream);
    });
  }

  std::string FaultText(const DeviceFault& fault) const override {
    return IndexFaultText("gather_grad", fault);
  }

 private:
  const TensorType type_;
  const DimView dy_;
  const DimView dx_;
};

}  // namespace

void RegisterIndexingKernels(KernelRegistry& registry) {
  registry.Register("iota", MakeKernel<Iota>);
  registry.Register("gather", MakeKernel<Gather>);
  registry.Register("gather_grad", MakeKernel<GatherGrad>);
}

}  // namespace zg::cuda
