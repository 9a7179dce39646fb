#include <algorithm>
#include <cstdint>
#include <memory>

#include "framework/kernels/cpu/broadcast_blocks.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/math/any_element.h"

namespace zg {
namespace {

using CompareFunction = void (*)(const void* const* operands, int64_t count, Truth* out);

template <Comparison kComparison, typename T>
void CompareBlock(const void* const* operands, int64_t count, Truth* out) {
  Multiversion([=]() ZG_VERSION {
    const T* const a = static_cast<const T*>(operands[0]);
    const T* const b = static_cast<const T*>(operands[1]);
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      out[i].byte =
          static_cast<uint8_t>(Holds(kComparison, NumberOf(a[i]), NumberOf(b[i])) ? 1 : 0);
    }
  });
}

// With one operand, the other is the attribute: a number that is repeated.
class Compare : public Kernel {
 public:
  Compare(const KernelSpec& spec, CompareFunction run)
      : run_(run),
        has_two_(spec.call.inputs.size() == 2),
        threads_(spec.threads),
        blocks_(spec.outputs[0].shape,
                {&spec.call.inputs[0].shape, has_two_ ? &spec.call.inputs[1].shape : &scalar_},
                {SizeOf(spec.call.inputs[0].dtype), SizeOf(spec.call.inputs[0].dtype)}) {
    if (has_two_) return;
    const double value = spec.call.attributes.Float("value");
    WithAnyType(spec.call.inputs[0].dtype, [&](auto zero) {
      using T = decltype(zero);
      *reinterpret_cast<T*>(value_) = ElementFrom<T>::Of(value);
    });
  }

  int64_t workspace_bytes() const override { return blocks_.workspace_bytes(threads_); }

  Status Run(const KernelArguments& arguments) override {
    const void* const inputs[] = {
        arguments.inputs[0], has_two_ ? arguments.inputs[1] : static_cast<const void*>(value_)};
    Truth* const y = arguments.output<Truth>(0);
    KernelArguments of_both = arguments;
    of_both.inputs = inputs;
    blocks_.ForEach(of_both, [&](const void* const* operands, int64_t begin, int64_t count) {
      run_(operands, count, y + begin);
    });
    return Status::Ok();
  }

 private:
  const CompareFunction run_;
  const bool has_two_;
  const int threads_;
  const Shape scalar_;
  const BroadcastBlocks<2> blocks_;
  alignas(8) char value_[8] = {};
};

template <Comparison kComparison>
StatusOr<std::unique_ptr<Kernel>> MakeCompare(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  return WithAnyType(spec.call.inputs[0].dtype, [&](auto zero) {
    return std::unique_ptr<Kernel>(
        std::make_unique<Compare>(spec, CompareBlock<kComparison, decltype(zero)>));
  });
}

template <Comparison kComparison>
StatusOr<std::unique_ptr<Kernel>> MakeLogical(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  return std::unique_ptr<Kernel>(std::make_unique<Compare>(spec, CompareBlock<kComparison, Truth>));
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
