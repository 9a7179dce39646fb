#include "framework/kernels/cpu/elementwise_kernel.h"
#include "framework/kernels/cpu/families.h"
#include "framework/kernels/cpu/kernel_util.h"

namespace zg {

void RegisterActivationKernels(KernelRegistry& registry) {
  for (const char* op : {"gelu", "gelu_grad", "relu", "relu_grad"}) {
    registry.Register(op, MakeKernel<ElementwiseKernel>);
  }
}

}  // namespace zg
