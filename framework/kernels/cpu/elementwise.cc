#include <string>

#include "framework/kernels/cpu/elementwise_kernel.h"
#include "framework/kernels/cpu/kernel_util.h"

namespace zg {

void RegisterElementwiseKernels(KernelRegistry& registry) {
  for (const ElementwiseRow& row : kElementwiseRows) {
    registry.Register(std::string(row.op), MakeKernel<ElementwiseKernel>);
  }
}

}  // namespace zg
