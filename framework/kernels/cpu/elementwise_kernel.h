// Runs one elementwise op over a whole tensor; operands of other shapes are broadcast. The output
// may be an input of the same shape.
#pragma once

#include <cstdint>
#include <optional>

#include "framework/kernels/cpu/broadcast_blocks.h"
#include "framework/kernels/cpu/elementwise_blocks.h"
#include "framework/kernels/kernel.h"

namespace zg {

class ElementwiseKernel : public Kernel {
 public:
  explicit ElementwiseKernel(const KernelSpec& spec);
  // For an op without an attribute, on operands of this type.
  ElementwiseKernel(ElementwiseCode code, const TensorType& type, int threads);
  int64_t workspace_bytes() const override;
  Status Run(const KernelArguments& arguments) override;

 private:
  ElementwiseFunction run_;
  int num_inputs_;
  float scalar_ = 0.0f;
  int64_t num_elements_;
  int64_t element_bytes_;
  int threads_;
  std::optional<BroadcastBlocks<2>> broadcast_;
};

}  // namespace zg
