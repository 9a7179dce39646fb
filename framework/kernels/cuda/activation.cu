#include "framework/kernels/cuda/elementwise_body.cuh"
#include "framework/kernels/cuda/families.h"

namespace zg::cuda {

void RegisterActivationKernels(KernelRegistry& registry) {
  registry.Register("gelu", MakeKernel<ElementwiseKernel<ElementwiseCode::kGelu>>);
  registry.Register("gelu_grad", MakeKernel<ElementwiseKernel<ElementwiseCode::kGeluGrad>>);
  registry.Register("relu", MakeKernel<ElementwiseKernel<ElementwiseCode::kRelu>>);
  registry.Register("relu_grad", MakeKernel<ElementwiseKernel<ElementwiseCode::kReluGrad>>);
}

}  // namespace zg::cuda
