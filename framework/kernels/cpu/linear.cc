#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/column_sum.h"
#include "framework/kernels/cpu/elementwise_kernel.h"
#include "framework/kernels/cpu/gemm_shared.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/ops/addend.h"
#include "framework/ops/summed_parts.h"

namespace zg {
namespace {

// Null if there is none.
const void* Input(const KernelArguments& arguments, int index) {
  return index < 0 ? nullptr : arguments.inputs[index];
}

GemmParts PartsOf(const ir::OpCall& call) {
  const SummedParts parts = SummedParts::Of(call);
  return {parts.count, parts.groups};
}

// y = x weight^T + bias + addend, with x (M, K), weight (N, K).
class Linear : public Kernel {
 public:
  explicit Linear(const KernelSpec& spec)
      : x_(AsMatrix(spec.call.inputs[0].shape)),
        columns_(spec.call.inputs[1].shape.dim(0)),
        bias_(WithoutAddend(spec.call).inputs.size() == 3 ? 2 : -1),
        addend_(AddendOf(spec.call)),
        gemm_(
            {x_.rows, columns_, x_.columns, false, true, spec.outputs[0].dtype, PartsOf(spec.call)},
            spec.threads) {}

  int64_t workspace_bytes() const override { return gemm_.workspace_bytes(); }

  Status Run(const KernelArguments& arguments) override {
    gemm_.Run({arguments.inputs[0], x_.columns}, {arguments.inputs[1], x_.columns},
              {Input(arguments, bias_), Input(arguments, addend_)}, arguments.outputs[0], columns_,
              arguments.workspace, arguments.threads);
    return Status::Ok();
  }

 private:
  const MatrixShape x_;
  const int64_t columns_;
  const int bias_;  // index among the inputs; -1: none
  const int addend_;
  const SharedGemm gemm_;
};

// y = gelu(h), h = x weight^T + bias: the kernels of linear and gelu one after the other, with
// their bits in every dtype.
class LinearGelu : public Kernel {
 public:
  explicit LinearGelu(const KernelSpec& spec)
      : linear_(spec), gelu_(ElementwiseCode::kGelu, spec.outputs[0], spec.threads) {}

  int64_t workspace_bytes() const override {
    return std::max(linear_.workspace_bytes(), gelu_.workspace_bytes());
  }

  Status Run(const KernelArguments& arguments) override {
    KernelArguments linear = arguments;
    linear.outputs = &arguments.outputs[1];
    ZG_RETURN_IF_ERROR(linear_.Run(linear));
    const void* const h = arguments.outputs[1];
    KernelArguments gelu = arguments;
    gelu.inputs = &h;
    return gelu_.Run(gelu);
  }

 private:
  Linear linear_;
  ElementwiseKernel gelu_;
};

// dx = dy weight + addend, with dy (M, N), weight (N, K).
class LinearGradInput : public Kernel {
 public:
  explicit LinearGradInput(const KernelSpec& spec)
      : dy_(AsMatrix(spec.call.inputs[0].shape)),
        columns_(spec.call.inputs[1].shape.dim(1)),
        addend_(AddendOf(spec.call)),
        gemm_({dy_.rows, columns_, dy_.columns, false, false, spec.outputs[0].dtype,
               PartsOf(spec.call)},
              spec.threads) {}

  int64_t workspace_bytes() const override { return gemm_.workspace_bytes(); }

  Status Run(const KernelArguments& arguments) override {
    gemm_.Run({arguments.inputs[0], dy_.columns}, {arguments.inputs[1], columns_},
              {nullptr, Input(arguments, addend_)}, arguments.outputs[0], columns_,
              arguments.workspace, arguments.threads);
    return Status::Ok();
  }

 private:
  const MatrixShape dy_;
  const int64_t columns_;
  const int addend_;
  const SharedGemm gemm_;
};

// dh = gelu'(h) (dy weight), likewise.
class LinearGradInputGelu : public Kernel {
 public:
  explicit LinearGradInputGelu(const KernelSpec& spec)
      : linear_grad_input_(spec),
        gelu_grad_(ElementwiseCode::kGeluGrad, spec.outputs[0], spec.threads) {}

  int64_t workspace_bytes() const override {
    return std::max(linear_grad_input_.workspace_bytes(), gelu_grad_.workspace_bytes());
  }

  Status Run(const KernelArguments& arguments) override {
    ZG_RETURN_IF_ERROR(linear_grad_input_.Run(arguments));
    const void* const inputs[] = {arguments.outputs[0], arguments.inputs[2]};
    KernelArguments gelu_grad = arguments;
    gelu_grad.inputs = inputs;
    return gelu_grad_.Run(gelu_grad);
  }

 private:
  LinearGradInput linear_grad_input_;
  ElementwiseKernel gelu_grad_;
};

// dw = dy^T x, with dy (M, N), x (M, K).
class LinearGradWeight : public Kernel {
 public:
  explicit LinearGradWeight(const KernelSpec& spec)
      : dy_(AsMatrix(spec.call.inputs[0].shape)),
        x_(AsMatrix(spec.call.inputs[1].shape)),
        gemm_({dy_.columns, x_.columns, dy_.rows, true, false, spec.outputs[0].dtype},
              spec.threads) {}

  int64_t workspace_bytes() const override { return gemm_.workspace_bytes(); }

  Status Run(const KernelArguments& arguments) override {
    gemm_.Run({arguments.inputs[0], dy_.columns}, {arguments.inputs[1], x_.columns}, nullptr,
              arguments.outputs[0], x_.columns, arguments.workspace, arguments.threads);
    return Status::Ok();
  }

 private:
  const MatrixShape dy_;
  const MatrixShape x_;
  const SharedGemm gemm_;
};

// db = sum over rows of dy.
class LinearGradBias : public Kernel {
 public:
  explicit LinearGradBias(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        columns_(AsMatrix(spec.call.inputs[0].shape).columns),
        parts_(RowParts::Of(spec.call)) {}

  Status Run(const KernelArguments& arguments) override {
    ColumnSum(dtype_, arguments.inputs[0], parts_, columns_, arguments.outputs[0],
              arguments.threads);
    return Status::Ok();
  }

 private:
  const DType dtype_;
  const int64_t columns_;
  const RowParts parts_;
};

}  // namespace

void RegisterLinearKernels(KernelRegistry& registry) {
  registry.Register("linear", MakeKernel<Linear>);
  registry.Register("linear_gelu", MakeKernel<LinearGelu>);
  registry.Register("linear_grad_input", MakeKernel<LinearGradInput>);
  registry.Register("linear_grad_input_gelu", MakeKernel<LinearGradInputGelu>);
  registry.Register("linear_grad_weight", MakeKernel<LinearGradWeight>);
  registry.Register("linear_grad_bias", MakeKernel<LinearGradBias>);
}

}  // namespace zg
