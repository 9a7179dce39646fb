#include "framework/kernels/cuda/elementwise_body.cuh"
#include "framework/kernels/cuda/families.h"

namespace zg::cuda {

void RegisterElementwiseKernels(KernelRegistry& registry) {
  registry.Register("add", MakeKernel<ElementwiseKernel<ElementwiseCode::kAdd>>);
  registry.Register("multiply", MakeKernel<ElementwiseKernel<ElementwiseCode::kMultiply>>);
  registry.Register("scale", MakeKernel<ElementwiseKernel<ElementwiseCode::kScale>>);
  registry.Register("subtract", MakeKernel<ElementwiseKernel<ElementwiseCode::kSubtract>>);
}

}  // namespace zg::cuda
