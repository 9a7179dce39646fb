#include <cstdint>
#include <memory>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/pair_kernel.h"
#include "framework/kernels/math/integer_math.h"
#include "framework/kernels/math/positive_divisor.h"

namespace zg {
namespace {

// y may be a or b.
template <IntegerOperation kOperation>
void ComputeBlock(const void* const* operands, int64_t count, int64_t* y) {
  Multiversion([=]() ZG_VERSION {
    const int64_t* const a = static_cast<const int64_t*>(operands[0]);
    const int64_t* const b = static_cast<const int64_t*>(operands[1]);
    ZG_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) y[i] = IntegerResult<kOperation>(a[i], b[i]);
  });
}

// For kFloorDivide and kRemainder, whose b is one number.
template <IntegerOperation kOperation>
void DivideBlock(const void* const* operands, int64_t count, int64_t* y) {
  const int64_t* const a = static_cast<const int64_t*>(operands[0]);
  const int64_t b = *static_cast<const int64_t*>(operands[1]);
  if (b == 1) {
    for (int64_t i = 0; i < count; ++i) y[i] = IntegerResult<kOperation>(a[i], 1);
    return;
  }
  const PositiveDivisor divisor(b);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t quotient = divisor.FloorDivide(a[i]);
    // The multiple may be below what i64 has; the difference then wraps around to the remainder.
    const auto multiple = static_cast<uint64_t>(quotient) * static_cast<uint64_t>(b);
    const auto remainder = static_cast<int64_t>(static_cast<uint64_t>(a[i]) - multiple);
    y[i] = kOperation == IntegerOperation::kFloorDivide ? quotient : remainder;
  }
}

template <IntegerOperation kOperation>
StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  constexpr bool kDivides =
      kOperation == IntegerOperation::kFloorDivide || kOperation == IntegerOperation::kRemainder;
  constexpr auto kBlock = kDivides ? DivideBlock<kOperation> : ComputeBlock<kOperation>;
  return std::unique_ptr<Kernel>(
      std::make_unique<PairKernel<int64_t>>(spec, kBlock, spec.call.attributes.Int("value")));
}

}  // namespace

void RegisterIntegersKernels(KernelRegistry& registry) {
  registry.Register("integer_add", Make<IntegerOperation::kAdd>);
  registry.Register("integer_subtract", Make<IntegerOperation::kSubtract>);
  registry.Register("integer_multiply", Make<IntegerOperation::kMultiply>);
  registry.Register("integer_maximum", Make<IntegerOperation::kMaximum>);
  registry.Register("integer_minimum", Make<IntegerOperation::kMinimum>);
  registry.Register("floor_divide", Make<IntegerOperation::kFloorDivide>);
  registry.Register("remainder", Make<IntegerOperation::kRemainder>);
}

}  // namespace zg
