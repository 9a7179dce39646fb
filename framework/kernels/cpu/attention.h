// Attention and its gradients with a given method of matrix multiplication, which must outlive the
// kernels: the registered kernels use the fastest one of this processor, tests use each. In 16 bits
// the weights and the scores' gradients are rounded as operands of products, whose sums are in f32.
#pragma once

#include <memory>

#include "framework/kernels/cpu/gemm_method.h"
#include "framework/kernels/kernel.h"

namespace zg {

std::unique_ptr<Kernel> MakeAttention(const KernelSpec& spec, const GemmMethod& method);
std::unique_ptr<Kernel> MakeAttentionGrad(const KernelSpec& spec, const GemmMethod& method);
std::unique_ptr<Kernel> MakeAttentionBiasGrad(const KernelSpec& spec, const GemmMethod& method);
std::unique_ptr<Kernel> MakeCachedAttention(const KernelSpec& spec, const GemmMethod& method);

}  // namespace zg
