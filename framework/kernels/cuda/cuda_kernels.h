// The kernels of NVIDIA GPUs: in f32, bf16 and f16 (ids in i64). A kernel enqueues its work on
// KernelArguments::stream and returns; values that change from step to step are read on the device.
// Its bits depend on neither the run nor the rank: every sum has one order.
//
//   ZG_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, CudaKernels().Make(spec));
#pragma once

#include <string>

#include "framework/kernels/kernel.h"

namespace zg {

// Without a CUDA toolkit at build time the registry is empty, so Make() is an error. With `tf32`,
// linear layers in f32 round their operands to TF32 (10 bits of mantissa) as they multiply them.
const KernelRegistry& CudaKernels(bool tf32 = false);

// The library version whose choices products depend on, "cuBLASLt 130100"; "no CUDA" without a
// toolkit.
std::string CudaLibraryVersion();

}  // namespace zg
