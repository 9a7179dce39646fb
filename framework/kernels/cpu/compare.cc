#include <cstdint>
#include <memory>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/pair_kernel.h"
#include "framework/kernels/math/any_element.h"

namespace zg {
namespace {

template <Comparison kComparison, typename T>
void CompareBlock(const void* const* operands, int64_t count, Truth* y) {
  Multiversion([=]() ZG_VERSION {
    const T* const a = static_cast<const T*>(operands[0]);
    const T* const b = static_cast<const T*>(operands[1]);
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      y[i].byte = static_cast<uint8_t>(Holds(kComparison, NumberOf(a[i]), NumberOf(b[i])) ? 1 : 0);
    }
  });
}

template <Comparison kComparison>
StatusOr<std::unique_ptr<Kernel>> MakeCompare(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  return WithAnyType(spec.call.inputs[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    return std::unique_ptr<Kernel>(std::make_unique<PairKernel<Truth>>(
        spec, CompareBlock<kComparison, T>,
        ElementFrom<T>::Of(spec.call.attributes.Float("value"))));
  });
}

template <Comparison kComparison>
StatusOr<std::unique_ptr<Kernel>> MakeLogical(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  return std::unique_ptr<Kernel>(
      std::make_unique<PairKernel<Truth>>(spec, CompareBlock<kComparison, Truth>, Truth{0}));
}

}  // namespace

void RegisterCompareKernels(KernelRegistry& registry) {
  registry.Register("equal", MakeCompare<Comparison::kEqual>);
  registry.Register("not_equal", MakeCompare<Comparison::kNotEqual>);
  registry.Register("less", MakeCompare<Comparison::kLess>);
  registry.Register("less_equal", MakeCompare<Comparison::kLessEqual>);
  registry.Register("greater", MakeCompare<Comparison::kGreater>);
  registry.Register("greater_equal", MakeCompare<Comparison::kGreaterEqual>);
  registry.Register("logical_and", MakeLogical<Comparison::kBoth>);
  registry.Register("logical_or", MakeLogical<Comparison::kEither>);
}

}  // namespace zg
