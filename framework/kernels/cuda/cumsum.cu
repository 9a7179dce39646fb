#include "framework/kernels/cuda/dim_path.cuh"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/dim_view.h"
#include "framework/kernels/math/any_element.h"

namespace zg::cuda {
namespace {

// A thread processes a column. y may be x.
template <typename T>
struct CumsumBody {
  const T* x;
  T* y;
  DimPath path;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
#pragma unroll
    for (int c = 0; c < kCount; ++c) {
      auto sum = NumberOf(T());  // f32, or i64
      int64_t at = path.First(begin + c);
      for (int64_t i = 0; i < path.size; ++i, at += path.Step()) {
        sum += NumberOf(x[at]);
        y[at] = ElementFrom<T>::Of(sum);
      }
    }
  }
};

class Cumsum : public Kernel {
 public:
  explicit Cumsum(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        x_(spec.outputs[0].shape, spec.call.attributes.Int("dim")),
        reverse_(spec.call.attributes.Bool("reverse")) {}

  Status Run(const KernelArguments& arguments) override {
    return WithAnyType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const CumsumBody<T> body = {
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

void RegisterCumsumKernels(KernelRegistry& registry) {
  registry.Register("cumsum", MakeKernel<Cumsum>);
}

}  // namespace zg::cuda
