// The kernels of the CPU: every op of framework/ops in f32 (ids in i64), one thread.
//
//   ZG_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, CpuKernels().Make(spec));
#pragma once

#include "framework/kernels/kernel.h"

namespace zg {

const KernelRegistry& CpuKernels();

}  // namespace zg
