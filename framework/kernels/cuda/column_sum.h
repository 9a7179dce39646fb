// The kernel of ops that sum a matrix over its rows.
#pragma once

#include "framework/kernels/cuda/kernel_util.h"

namespace zg::cuda {

// sum[c] = sum over r of x[r * columns + c], both of `dtype`; added up in f32.
class ColumnSum : public Kernel {
 public:
  ColumnSum(DType dtype, const MatrixShape& shape) : dtype_(dtype), shape_(shape) {}
  int64_t workspace_bytes() const override;
  Status Run(const KernelArguments& arguments) override;

 private:
  const DType dtype_;
  const MatrixShape shape_;
};

}  // namespace zg::cuda
