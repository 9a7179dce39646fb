#include "framework/kernels/cuda/cuda_kernels.h"

#include "framework/kernels/cuda/families.h"

namespace zg {

namespace {

const KernelRegistry* MakeRegistry(bool tf32) {
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
  cuda::RegisterLinearKernels(tf32, *kernels);
  cuda::RegisterLossKernels(*kernels);
  cuda::RegisterLossScalingKernels(*kernels);
  cuda::RegisterOptimizerKernels(*kernels);
  cuda::RegisterStructureKernels(*kernels);
  return kernels;
}

}  // namespace

const KernelRegistry& CudaKernels(bool tf32) {
  static const KernelRegistry* const exact = MakeRegistry(false);
  static const KernelRegistry* const rounding = MakeRegistry(true);
  return tf32 ? *rounding : *exact;
}

}  // namespace zg
