// How an op that has no 16-bit kernel of its own runs on bf16 and f16: a kernel for the same sizes
// in f32 between copies of the operands in f32, which are part of the workspace.
#pragma once

#include <functional>
#include <memory>

#include "framework/base/status.h"
#include "framework/kernels/kernel.h"

namespace zg {

using MakeKernelFunction = std::function<StatusOr<std::unique_ptr<Kernel>>(const KernelSpec& spec)>;

bool HasHalfOperand(const KernelSpec& spec);  // bf16 or f16

// `make` is called with the spec in which f32 takes the place of bf16 and f16.
StatusOr<std::unique_ptr<Kernel>> MakeWidenedKernel(const KernelSpec& spec,
                                                    const MakeKernelFunction& make);

}  // namespace zg
