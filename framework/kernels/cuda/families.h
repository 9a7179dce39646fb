// One line per op family: puts its CUDA kernels into the registry. The file of a family has the
// same name here and in framework/ops.
#pragma once

#include "framework/kernels/kernel.h"

namespace zg::cuda {

void RegisterActivationKernels(KernelRegistry& registry);
void RegisterAttentionKernels(KernelRegistry& registry);
void RegisterBroadcastKernels(KernelRegistry& registry);
void RegisterCastKernels(KernelRegistry& registry);
void RegisterDropoutKernels(KernelRegistry& registry);
void RegisterElementwiseKernels(KernelRegistry& registry);
void RegisterEmbeddingKernels(KernelRegistry& registry);
void RegisterFusedElementwiseKernels(KernelRegistry& registry);
void RegisterGradientNormKernels(KernelRegistry& registry);
void RegisterLayerNormKernels(KernelRegistry& registry);
void RegisterLinearKernels(bool tf32, KernelRegistry& registry);
void RegisterLossKernels(KernelRegistry& registry);
void RegisterLossScalingKernels(KernelRegistry& registry);
void RegisterOptimizerKernels(KernelRegistry& registry);
void RegisterStructureKernels(KernelRegistry& registry);

}  // namespace zg::cuda
