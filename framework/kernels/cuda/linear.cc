#include <memory>
#include <utility>

#include "framework/kernels/cuda/column_sum.h"
#include "framework/kernels/cuda/families.h"
#include "framework/kernels/cuda/kernel_util.h"
#include "framework/kernels/cuda/matmul.h"

namespace zg::cuda {
namespace {

// Input 0 times input 1, plus input 2 if there is a bias.
class Product : public Kernel {
 public:
  Product(std::unique_ptr<Matmul> matmul, bool has_bias)
      : matmul_(std::move(matmul)), has_bias_(has_bias) {}

  int64_t workspace_bytes() const override { return matmul_->workspace_bytes(); }

  Status Run(const KernelArguments& arguments) override {
    return matmul_->Run({arguments.inputs[0], arguments.inputs[1],
                         has_bias_ ? arguments.inputs[2] : nullptr, arguments.outputs[0]},
                        arguments.workspace, arguments.stream);
  }

 private:
  const std::unique_ptr<Matmul> matmul_;
  const bool has_bias_;
};

StatusOr<std::unique_ptr<Kernel>> MakeProduct(const KernelSpec& spec, const MatmulShape& shape) {
  ZG_RETURN_IF_ERROR(CheckCudaTypes(spec));
  ZG_ASSIGN_OR_RETURN(std::unique_ptr<Matmul> matmul, Matmul::Make(shape));
  return std::unique_ptr<Kernel>(std::make_unique<Product>(std::move(matmul), shape.has_bias));
}

// y = x weight^T + bias, with x (M, K), weight (N, K).
template <bool kTf32>
StatusOr<std::unique_ptr<Kernel>> MakeLinear(const KernelSpec& spec) {
  const MatrixShape x = AsMatrix(spec.call.inputs[0].shape);
  MatmulShape shape;
  shape.rows = x.rows;
  shape.columns = spec.call.inputs[1].shape.dim(0);
  shape.depth = x.columns;
  shape.transpose_b = true;
  shape.has_bias = spec.call.inputs.size() == 3;
  shape.dtype = spec.outputs[0].dtype;
  shape.tf32 = kTf32;
  return MakeProduct(spec, shape);
}

// dx = dy weight, with dy (M, N), weight (N, K).
template <bool kTf32>
StatusOr<std::unique_ptr<Kernel>> MakeLinearGradInput(const KernelSpec& spec) {
  const MatrixShape dy = AsMatrix(spec.call.inputs[0].shape);
  MatmulShape shape;
  shape.rows = dy.rows;
  shape.columns = spec.call.inputs[1].shape.dim(1);
  shape.depth = dy.columns;
  shape.dtype = spec.outputs[0].dtype;
  shape.tf32 = kTf32;
  return MakeProduct(spec, shape);
}

// dw = dy^T x, with dy (M, N), x (M, K).
template <bool kTf32>
StatusOr<std::unique_ptr<Kernel>> MakeLinearGradWeight(const KernelSpec& spec) {
  const MatrixShape dy = AsMatrix(spec.call.inputs[0].shape);
  const MatrixShape x = AsMatrix(spec.call.inputs[1].shape);
  MatmulShape shape;
  shape.rows = dy.columns;
  shape.columns = x.columns;
  shape.depth = dy.rows;
  shape.transpose_a = true;
  shape.dtype = spec.outputs[0].dtype;
  shape.tf32 = kTf32;
  return MakeProduct(spec, shape);
}

// db = sum over rows of dy.
StatusOr<std::unique_ptr<Kernel>> MakeLinearGradBias(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCudaTypes(spec));
  return std::unique_ptr<Kernel>(
      std::make_unique<ColumnSum>(spec.outputs[0].dtype, AsMatrix(spec.call.inputs[0].shape)));
}

template <bool kTf32>
void RegisterProducts(KernelRegistry& registry) {
  registry.Register("linear", MakeLinear<kTf32>);
  registry.Register("linear_grad_input", MakeLinearGradInput<kTf32>);
  registry.Register("linear_grad_weight", MakeLinearGradWeight<kTf32>);
}

}  // namespace

void RegisterLinearKernels(bool tf32, KernelRegistry& registry) {
  tf32 ? RegisterProducts<true>(registry) : RegisterProducts<false>(registry);
  registry.Register("linear_grad_bias", MakeLinearGradBias);
}

}  // namespace zg::cuda
