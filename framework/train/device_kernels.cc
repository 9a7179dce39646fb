#include "framework/train/device_kernels.h"

#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/kernels/cuda/cuda_kernels.h"

namespace zg {

StatusOr<const KernelRegistry*> DeviceKernels(const Device& device, const KernelOptions& options) {
  if (device.is_host()) {
    if (!options.tf32) return &CpuKernels(options.threads);
    return InvalidArgument(
        "tf32 is for the tensor cores of a GPU, but the ranks compute on the CPU");
  }
  if (options.threads == 1) return &CudaKernels(options.tf32);
  return InvalidArgument(
      "threads are for ranks that compute on the CPU: got {}, on a GPU expected 1",
      options.threads);
}

}  // namespace zg
