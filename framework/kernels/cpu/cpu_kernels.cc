#include "framework/kernels/cpu/cpu_kernels.h"

#include "framework/kernels/cpu/families.h"

namespace zg {

const KernelRegistry& CpuKernels() {
  static const KernelRegistry* const registry = [] {
    auto* kernels = new KernelRegistry;
    RegisterActivationKernels(*kernels);
    RegisterAttentionKernels(*kernels);
    RegisterBroadcastKernels(*kernels);
    RegisterCastKernels(*kernels);
    RegisterDropoutKernels(*kernels);
    RegisterElementwiseKernels(*kernels);
    RegisterEmbeddingKernels(*kernels);
    RegisterFusedElementwiseKernels(*kernels);
    RegisterGradientNormKernels(*kernels);
    RegisterLayerNormKernels(*kernels);
    RegisterLinearKernels(*kernels);
    RegisterLossKernels(*kernels);
    RegisterLossScalingKernels(*kernels);
    RegisterOptimizerKernels(*kernels);
    RegisterStructureKernels(*kernels);
    return kernels;
  }();
  return *registry;
}

}  // namespace zg
