// Adds many exact sums on the device (framework/base/exact_sum.h).
#pragma once

#include "framework/kernels/cuda/kernel_util.h"

namespace zg::cuda {

// words = the sum of inputs [0, num_sums) of the node, with its digits carried.
Status CombineExactSums(const KernelArguments& arguments, int num_sums, int64_t* words);

}  // namespace zg::cuda
