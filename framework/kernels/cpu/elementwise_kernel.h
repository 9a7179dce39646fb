// Runs one elementwise op over a whole tensor. The output may be one of the inputs.
#pragma once

#include <cstdint>

#include "framework/kernels/cpu/elementwise_blocks.h"
#include "framework/kernels/kernel.h"

namespace zg {

class ElementwiseKernel : public Kernel {
 public:
  explicit ElementwiseKernel(const KernelSpec& spec);
  // Of an op without an attribute.
  ElementwiseKernel(ElementwiseCode code, const TensorType& type);
  Status Run(const KernelArguments& arguments) override;

 private:
  ElementwiseFunction run_;
  float scalar_ = 0.0f;
  int64_t num_elements_;
};

}  // namespace zg
