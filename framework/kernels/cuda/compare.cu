#include "framework/kernels/cuda/pair_body.cuh"
#include "framework/kernels/math/any_element.h"

namespace zg::cuda {
namespace {

template <Comparison kComparison>
struct DoesHold {
  template <typename T>
  __device__ Truth operator()(T a, T b) const {
    return {static_cast<uint8_t>(Holds(kComparison, NumberOf(a), NumberOf(b)) ? 1 : 0)};
  }
};

template <Comparison kComparison>
class Compare : public Kernel {
 public:
  explicit Compare(const KernelSpec& spec) : dtype_(spec.call.inputs[0].dtype), call_(spec) {
    if (spec.call.inputs.size() == 1) value_ = spec.call.attributes.Float("value");
  }

  Status Run(const KernelArguments& arguments) override {
    return WithAnyType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      return call_.Run<4, Truth>(arguments, DoesHold<kComparison>(), ElementFrom<T>::Of(value_));
    });
  }

 private:
  const DType dtype_;
  const PairCall call_;
  double value_ = 0.0;
};

}  // namespace

void RegisterCompareKernels(KernelRegistry& registry) {
  registry.Register("equal", MakeKernel<Compare<Comparison::kEqual>>);
  registry.Register("not_equal", MakeKernel<Compare<Comparison::kNotEqual>>);
  registry.Register("less", MakeKernel<Compare<Comparison::kLess>>);
  registry.Register("less_equal", MakeKernel<Compare<Comparison::kLessEqual>>);
  registry.Register("greater", MakeKernel<Compare<Comparison::kGreater>>);
  registry.Register("greater_equal", MakeKernel<Compare<Comparison::kGreaterEqual>>);
  registry.Register("logical_and", MakeKernel<Compare<Comparison::kBoth>>);
  registry.Register("logical_or", MakeKernel<Compare<Comparison::kEither>>);
}

}  // namespace zg::cuda
