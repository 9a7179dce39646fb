#include "framework/kernels/cuda/cuda_kernels.h"

#include "framework/kernels/cuda/families.h"

namespace zg {

const KernelRegistry& CudaKernels() {
  static const KernelRegistry* const registry = [] {
    auto* kernels = new KernelRegistry;
    cuda::RegisterActivationKernels(*kernels);
    cuda::RegisterAttentionKernels(*kernels);
    cuda::RegisterBroadcastKernels(*kernels);
    cuda::RegisterCastKernels(*kernels);
    cuda::RegisterDropoutKernels(*kernels);
    cuda::RegisterElementwiseKernels(*kernels);
    cuda::RegisterEmbeddingKernels(*kernels);
    cuda::RegisterFusedElementwiseKernels(*kernels);
    cuda::RegisterGradientNormKernels(*kernels);
    cuda::RegisterLayerNormKernels(*kernels);
    cuda::RegisterLinearKernels(*kernels);
    cuda::RegisterLossKernels(*kernels);
    cuda::RegisterLossScalingKernels(*kernels);
    cuda::RegisterOptimizerKernels(*kernels);
    cuda::RegisterStructureKernels(*kernels);
    return kernels;
  }();
  return *registry;
}

}  // namespace zg
