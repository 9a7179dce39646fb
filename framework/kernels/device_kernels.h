// The kernels of this build for a device, and the arithmetic that their bits depend on.
#pragma once

#include <string>

#include "framework/base/status.h"
#include "framework/device/device.h"
#include "framework/kernels/kernel.h"
#include "framework/tensor/dtype.h"

namespace zg {

// With `tf32`, linear layers in f32 on a GPU may round operands (CudaKernels); `threads` are those
// of CpuKernels. Errors: `tf32` for the host, several threads for a GPU; fewer than 1 or more
// than 1024 threads.
StatusOr<const KernelRegistry*> DeviceKernels(const Device& device, const KernelOptions& options);

// Describes the arithmetic of a model in `dtype`: equal descriptions mean equal bits. "x86-64" for
// every processor in f32 and f16; "x86-64, bf16 products by amx"; "NVIDIA H200, cuBLASLt 130100".
std::string ArithmeticOf(const Device& device, DType dtype);

}  // namespace zg
