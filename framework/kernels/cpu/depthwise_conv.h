// Convolutions with a group for each channel, and their gradients: sixteen planes at a time, each in a
// lane of vectors. A matrix product, as in other convolutions, would have one row.
#pragma once

#include <memory>

#include "framework/kernels/conv_shape.h"
#include "framework/kernels/kernel.h"

namespace zg {

inline bool IsDepthwise(const ConvShape& shape) {
  return shape.channels == 1 && shape.outputs == 1 && shape.groups > 1;
}

std::unique_ptr<Kernel> MakeDepthwiseConv(const KernelSpec& spec);
std::unique_ptr<Kernel> MakeDepthwiseConvGradInput(const KernelSpec& spec);
std::unique_ptr<Kernel> MakeDepthwiseConvGradWeight(const KernelSpec& spec);

}  // namespace zg
