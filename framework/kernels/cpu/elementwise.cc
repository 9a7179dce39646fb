#include "framework/kernels/cpu/elementwise_kernel.h"
#include "framework/kernels/cpu/families.h"
#include "framework/kernels/cpu/kernel_util.h"

namespace zg {

void RegisterElementwiseKernels(KernelRegistry& registry) {
  for (const char* op : {"add", "multiply", "scale", "subtract"}) {
    registry.Register(op, MakeKernel<ElementwiseKernel>);
  }
}

}  // namespace zg
