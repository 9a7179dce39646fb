// Attention and its gradients by a given way of multiplying matrices, which outlives the kernels:
// the registered ones take the fastest of this processor, tests take each. In 16 bits the weights
// and the scores' gradients are rounded as operands of products, whose sums are in f32.
#pragma once

#include <memory>

#include "framework/kernels/cpu/gemm_method.h"
#include "framework/kernels/kernel.h"

namespace zg {

std::unique_ptr<Kernel> MakeAttention(const KernelSpec& spec, const GemmMethod& method);
std::unique_ptr<Kernel> MakeAttentionGrad(const KernelSpec& spec, const GemmMethod& method);
std::unique_ptr<Kernel> MakeAttentionBiasGrad(const KernelSpec& spec, const GemmMethod& method);

}  // namespace zg
