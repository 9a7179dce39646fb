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

template <Comparison kComparison>
StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCudaTypes(spec));
  return std::unique_ptr<Kernel>(std::make_unique<Compare>(spec, kComparison));
}

}  // namespace

void RegisterCompareKernels(KernelRegistry& registry) {
  registry.Register("equal", Make<Comparison::kEqual>);
  registry.Register("not_equal", Make<Comparison::kNotEqual>);
  registry.Register("less", Make<Comparison::kLess>);
  registry.Register("less_equal", Make<Comparison::kLessEqual>);
  registry.Register("greater", Make<Comparison::kGreater>);
  registry.Register("greater_equal", Make<Comparison::kGreaterEqual>);
  registry.Register("logical_and", Make<Comparison::kBoth>);
  registry.Register("logical_or", Make<Comparison::kEither>);
}

}  // namespace zg::cuda
