// The kernels of this build for a device.
#pragma once

#include "framework/base/status.h"
#include "framework/device/device.h"
#include "framework/kernels/kernel.h"

namespace zg {

// With `tf32` linear layers in f32 on a GPU may round operands (CudaKernels); `threads` are those of
// CpuKernels. Errors: `tf32` for the host, several threads for a GPU.
StatusOr<const KernelRegistry*> DeviceKernels(const Device& device, const KernelOptions& options);

}  // namespace zg
