// What the factories of the CPU kernels share: dtype checks and the view of a tensor as a matrix.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/base/status.h"
#include "framework/kernels/cpu/widened_kernel.h"
#include "framework/kernels/kernel.h"

namespace zg {

// Error if an operand is neither floating-point nor i64, which is all that these kernels read and
// write.
Status CheckCpuTypes(const KernelSpec& spec);

// A tensor as rows of its last dim.
struct MatrixShape {
  int64_t rows = 1;
  int64_t columns = 1;
};
MatrixShape AsMatrix(const Shape& shape);

// The factory of a kernel in f32 that can be made for every spec of its op; on 16-bit operands it
// runs on copies in f32.
template <typename KernelType>
StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  if (HasHalfOperand(spec)) return MakeWidenedKernel(spec, MakeKernel<KernelType>);
  return std::unique_ptr<Kernel>(std::make_unique<KernelType>(spec));
}

// The factory of a kernel that takes any mixture of floating-point types as it is.
template <typename KernelType>
StatusOr<std::unique_ptr<Kernel>> MakeAnyFloatKernel(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  return std::unique_ptr<Kernel>(std::make_unique<KernelType>(spec));
}

}  // namespace zg
