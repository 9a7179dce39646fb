#include "framework/kernels/cuda/elementwise_body.cuh"

namespace zg::cuda {

void RegisterElementwiseKernels(KernelRegistry& registry) {
#define ZG_UNARY(Name, name, ...)                                                 \
  registry.Register(name, MakeKernel<ElementwiseKernel, ElementwiseCode::k##Name, \
                                     &RunElementwise<ElementwiseCode::k##Name>>);
#define ZG_UNARY_WITH(Name, name, ...) ZG_UNARY(Name, name)
#define ZG_BINARY(Name, name, ...) ZG_UNARY(Name, name)
#define ZG_BINARY_WITH(Name, name, ...) ZG_UNARY(Name, name)
#include "framework/ops/elementwise.inc"
}

}  // namespace zg::cuda
