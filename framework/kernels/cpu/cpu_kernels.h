// The kernels of the CPU: in f32, bf16 and f16 (ids in i64), on one thread or on several with the
// same bits (sharing.h).
//
//   ZG_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, CpuKernels().Make(spec));
#pragma once

#include <string>
#include <string_view>

#include "framework/kernels/kernel.h"

namespace zg {

// The kernels may use `threads` threads (KernelArguments::threads), for which they need workspace.
const KernelRegistry& CpuKernels(int threads = 1);

// Registers a kernel of an op that is defined elsewhere; must be called before a graph with the op
// is compiled.
void RegisterCpuKernel(std::string op, KernelFactory factory);

// The instructions that multiply bf16 here and add in an order of their own, "amx" or
// "avx512_bf16"; "" if products have the bits of every processor.
std::string_view OwnOrderOfBf16Products();

}  // namespace zg
