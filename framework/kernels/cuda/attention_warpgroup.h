// Attention in 16 bits by the products of warpgroups, for heads of 33 to 64 channels. On devices of
// compute capability 9.0 (H100, H200), whose instructions for these no other device has.
#pragma once

#include "framework/base/status.h"
#include "framework/kernels/cuda/attention_shape.h"

namespace zg::cuda {

// Whether the current device has them.
bool HasWarpgroupProducts();

// Operands must be those that attention_tensor_core.cuh takes.
template <typename T>
Status RunAttentionOfWarpgroups(const AttentionArrays<T>& arrays, const AttentionShape& shape,
                                void* stream);
template <typename T>
Status RunAttentionGradOfWarpgroups(const AttentionGradArrays<T>& arrays,
                                    const AttentionShape& shape, void* stream);

}  // namespace zg::cuda
