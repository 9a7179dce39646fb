// Helpers of the CPU kernels' factories: dtype checks and the view of a tensor as a matrix.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/base/status.h"
#include "framework/kernels/kernel.h"

namespace zg {

// Error if an operand is not floating-point, i64 or bool: these kernels read and write nothing
// else.
Status CheckCpuTypes(const KernelSpec& spec);

// A tensor as rows of its last dim.
struct MatrixShape {
  int64_t rows = 1;
  int64_t columns = 1;
};
MatrixShape AsMatrix(const Shape& shape);

// The factory of a kernel that can be made for every spec of its op: KernelType(spec, kArguments...).
template <typename KernelType, auto... kArguments>
StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  return std::unique_ptr<Kernel>(std::make_unique<KernelType>(spec, kArguments...));
}

}  // namespace zg
