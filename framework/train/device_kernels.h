// The kernels of this build for a device.
#pragma once

#include "framework/base/status.h"
#include "framework/device/device.h"
#include "framework/kernels/kernel.h"

namespace zg {

// With `tf32` linear layers in f32 on a GPU may round operands (CudaKernels). Error: `tf32` for the
// host.
StatusOr<const KernelRegistry*> DeviceKernels(const Device& device, bool tf32);

}  // namespace zg
