// Runs one op of elementwise_blocks.h over a whole tensor. The output may be one of the inputs.
#pragma once

#include <cstdint>

#include "framework/kernels/cpu/elementwise_blocks.h"
#include "framework/kernels/kernel.h"

namespace zg {

class ElementwiseKernel : public Kernel {
 public:
  explicit ElementwiseKernel(const KernelSpec& spec);
  Status Run(const KernelArguments& arguments) override;

 private:
  const ElementwiseOp* op_;
  float scalar_ = 0.0f;
  int64_t num_elements_;
};

}  // namespace zg
