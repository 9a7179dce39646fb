#include "framework/kernels/cuda/pair_body.cuh"
#include "framework/kernels/math/any_element.h"

namespace zg::cuda {
namespace {

// One kernel for all comparisons: memory limits it more than the selection does.
struct DoesHold {
  Comparison comparison;

  template <typename T>
  __device__ Truth operator()(T a, T b) const {
    return {static_cast<uint8_t>(Holds(comparison, NumberOf(a), NumberOf(b)) ? 1 : 0)};
  }
};

class Compare : public Kernel {
 public:
  Compare(const KernelSpec& spec, Comparison comparison)
      : does_hold_{comparison}, dtype_(spec.call.inputs[0].dtype), call_(spec) {
    if (spec.call.inputs.size() == 1) value_ = spec.call.attributes.Float("value");
  }

  Status Run(const KernelArguments& arguments) override {
    return WithAnyType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      return call_.Run<4, Truth>(arguments, does_hold_, ElementFrom<T>::Of(value_));
    });
  }

 private:
  const DoesHold does_hold_;
  const DType dtype_;
  const PairCall call_;
  double value_ = 0.0;
};

}  // namespace

void RegisterCompareKernels(KernelRegistry& registry) {
  registry.Register("equal", MakeKernel<Compare, Comparison::kEqual>);
  registry.Register("not_equal", MakeKernel<Compare, Comparison::kNotEqual>);
  registry.Register("less", MakeKernel<Compare, Comparison::kLess>);
  registry.Register("less_equal", MakeKernel<Compare, Comparison::kLessEqual>);
  registry.Register("greater", MakeKernel<Compare, Comparison::kGreater>);
  registry.Register("greater_equal", MakeKernel<Compare, Comparison::kGreaterEqual>);
  registry.Register("logical_and", MakeKernel<Compare, Comparison::kBoth>);
  registry.Register("logical_or", MakeKernel<Compare, Comparison::kEither>);
}

}  // namespace zg::cuda
