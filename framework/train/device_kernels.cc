#include "framework/train/device_kernels.h"

#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/kernels/cuda/cuda_kernels.h"

namespace zg {

StatusOr<const KernelRegistry*> DeviceKernels(const Device& device, bool tf32) {
  if (!device.is_host()) return &CudaKernels(tf32);
  if (!tf32) return &CpuKernels();
  return InvalidArgument("tf32 is for the tensor cores of a GPU, but the ranks compute on the CPU");
}

}  // namespace zg
