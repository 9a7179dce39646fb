#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/math/any_element.h"

namespace zg::cuda {
namespace {

template <typename From, typename To>
struct CastBody {
  const From* x;
  To* y;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
    StoreFloats(LoadFloats<kCount>(x + begin), y + begin);
  }
};

// Converts from or to i64 or bool.
template <typename From, typename To>
struct ConvertBody {
  const From* x;
  To* y;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      y[begin + i] = ElementFrom<To>::Of(NumberOf(x[begin + i]));
    }
  }
};

class Cast : public Kernel {
 public:
  explicit Cast(const KernelSpec& spec)
      : from_(spec.call.inputs[0].dtype),
        to_(spec.outputs[0].dtype),
        num_elements_(spec.outputs[0].shape.num_elements()) {}

  Status Run(const KernelArguments& arguments) override {
    if (!IsFloat(from_) || !IsFloat(to_)) return Convert(arguments);
    return WithFloatType(from_, [&](auto from) {
      return WithFloatType(to_, [&](auto to) {
        using From = decltype(from);
        using To = decltype(to);
        constexpr int kPack = kPackOf < From >> kPackOf<To> ? kPackOf<From> : kPackOf<To>;
        const CastBody<From, To> body = {arguments.input<From>(0), arguments.output<To>(0)};
        return RunPacks<kPack>(body, AreAligned(16, body.x, body.y), num_elements_,
                               arguments.stream);
      });
    });
  }

 private:
  Status Convert(const KernelArguments& arguments) const {
    return WithAnyType(from_, [&](auto from) {
      return WithAnyType(to_, [&](auto to) {
        using From = decltype(from);
        using To = decltype(to);
        const ConvertBody<From, To> body = {arguments.input<From>(0), arguments.output<To>(0)};
        return RunPacks<1>(body, true, num_elements_, arguments.stream);
      });
    });
  }

  const DType from_;
  const DType to_;
  const int64_t num_elements_;
};

}  // namespace

void RegisterCastKernels(KernelRegistry& registry) { registry.Register("cast", MakeKernel<Cast>); }

}  // namespace zg::cuda
