// Runs one op of elementwise_blocks.h over a whole tensor. The output may be one of the inputs.
#pragma once

#include <cstdint>
#include <string_view>

#include "framework/kernels/cpu/elementwise_blocks.h"
#include "framework/kernels/kernel.h"

namespace zg {

class ElementwiseKernel : public Kernel {
 public:
  explicit ElementwiseKernel(const KernelSpec& spec);
  // Of an op without a scalar.
  ElementwiseKernel(std::string_view op, const TensorType& type);
  Status Run(const KernelArguments& arguments) override;

 private:
  const ElementwiseOp* op_;
  ElementwiseFunction run_ = nullptr;
  float scalar_ = 0.0f;
  int64_t num_elements_;
};

}  // namespace zg
