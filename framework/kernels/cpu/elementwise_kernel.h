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
  int64_t workspace_bytes() const override;
  Status Run(const KernelArguments& arguments) override;

 private:
  Status RunHalf(const KernelArguments& arguments);

  const ElementwiseOp* op_;
  DType dtype_;
  float scalar_ = 0.0f;
  int64_t num_elements_;
};

}  // namespace zg
