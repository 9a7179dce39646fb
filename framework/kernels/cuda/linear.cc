#include <algorithm>
#include <memory>
#include <utility>

#include "framework/kernels/cuda/column_sum.h"
#include "framework/kernels/cuda/gelu.h"
#include "framework/kernels/cuda/kernel_util.h"
#include "framework/kernels/cuda/matmul.h"
#include "framework/ops/addend.h"

namespace zg::cuda {
namespace {

// Input 0 times input 1, plus input 2 if there is a bias, plus an addend if there is one.
class Product : public Kernel {
 public:
  Product(std::unique_ptr<Matmul> matmul, bool has_bias, int addend)
      : matmul_(std::move(matmul)), has_bias_(has_bias), addend_(addend) {}

  int64_t workspace_bytes() const override { return matmul_->workspace_bytes(); }

  Status Run(const KernelArguments& arguments) override {
    Matmul::Operands operands = {arguments.inputs[0], arguments.inputs[1],
                                 has_bias_ ? arguments.inputs[2] : nullptr, arguments.outputs[0]};
    if (addend_ >= 0) operands.addend = arguments.inputs[addend_];
    return matmul_->Run(operands, arguments.workspace, arguments.stream);
  }

 private:
  const std::unique_ptr<Matmul> matmul_;
  const bool has_bias_;
  const int addend_;  // index among the inputs; -1: none
};

StatusOr<std::unique_ptr<Kernel>> MakeProduct(const KernelSpec& spec, MatmulShape shape) {
  ZG_RETURN_IF_ERROR(CheckCudaTypes(spec));
  const int addend = AddendOf(spec.call);
  shape.has_addend = addend >= 0;
  ZG_ASSIGN_OR_RETURN(std::unique_ptr<Matmul> matmul, Matmul::Make(shape, spec.gemm_choices));
  return std::unique_ptr<Kernel>(
      std::make_unique<Product>(std::move(matmul), shape.has_bias, addend));
}

// A product followed by a gelu, in two ways: with an epilogue that computes the gelu, or with our
// own kernel after it. The choice depends only on shapes, device and alignment.
struct GeluProduct {
  std::unique_ptr<Matmul> fused;  // null if there is no such epilogue
  std::unique_ptr<Matmul> product;

  int64_t workspace_bytes() const {
    return std::max(product->workspace_bytes(), fused == nullptr ? 0 : fused->workspace_bytes());
  }
  bool IsFused(const Matmul::Operands& operands) const {
    return fused != nullptr && fused->CanRun(operands);
  }
};

// From a product without the epilogue.
StatusOr<GeluProduct> MakeGeluProduct(const KernelSpec& spec, MatmulShape shape,
                                      MatmulEpilogue epilogue) {
  ZG_RETURN_IF_ERROR(CheckCudaTypes(spec));
  GeluProduct made;
  ZG_ASSIGN_OR_RETURN(made.product, Matmul::Make(shape, spec.gemm_choices));
  // cuBLASLt does not document how exact its tanh is: exact enough for results in 16 bits.
  if (shape.dtype == DType::kF32) return made;
  shape.epilogue = epilogue;
  ZG_ASSIGN_OR_RETURN(made.fused, Matmul::MakeIfKnown(shape, spec.gemm_choices));
  return made;
}

// y = gelu(h), h = x weight^T + bias.
class LinearGelu : public Kernel {
 public:
  LinearGelu(const KernelSpec& spec, GeluProduct product)
      : type_(spec.outputs[0]),
        has_bias_(spec.call.inputs.size() == 3),
        product_(std::move(product)) {}

  int64_t workspace_bytes() const override { return product_.workspace_bytes(); }

  Status Run(const KernelArguments& arguments) override {
    void* const y = arguments.outputs[0];
    void* const h = arguments.outputs[1];
    Matmul::Operands operands = {arguments.inputs[0], arguments.inputs[1],
                                 has_bias_ ? arguments.inputs[2] : nullptr, y, h};
    if (product_.IsFused(operands)) {
      return product_.fused->Run(operands, arguments.workspace, arguments.stream);
    }
    operands.c = h;
    ZG_RETURN_IF_ERROR(product_.product->Run(operands, arguments.workspace, arguments.stream));
    return Gelu(type_, h, y, arguments.stream);
  }

 private:
  const TensorType type_;
  const bool has_bias_;
  const GeluProduct product_;
};

// dh = gelu'(h) (dy weight).
class LinearGradInputGelu : public Kernel {
 public:
  LinearGradInputGelu(const KernelSpec& spec, GeluProduct product)
      : type_(spec.outputs[0]), product_(std::move(product)) {}

  int64_t workspace_bytes() const override { return product_.workspace_bytes(); }

  Status Run(const KernelArguments& arguments) override {
    void* const dh = arguments.outputs[0];
    const void* const h = arguments.inputs[2];
    const Matmul::Operands operands = {arguments.inputs[0], arguments.inputs[1], nullptr, dh,
                                       const_cast<void*>(h)};
    if (product_.IsFused(operands)) {
      return product_.fused->Run(operands, arguments.workspace, arguments.stream);
    }
    ZG_RETURN_IF_ERROR(product_.product->Run(operands, arguments.workspace, arguments.stream));
    return GeluGrad(type_, dh, h, dh, arguments.stream);
  }

 private:
  const TensorType type_;
  const GeluProduct product_;
};

// With x (M, K), weight (N, K).
template <bool kTf32>
MatmulShape LinearShape(const KernelSpec& spec) {
  const MatrixShape x = AsMatrix(spec.call.inputs[0].shape);
  MatmulShape shape;
  shape.rows = x.rows;
  shape.columns = spec.call.inputs[1].shape.dim(0);
  shape.depth = x.columns;
  shape.transpose_b = true;
  shape.has_bias = WithoutAddend(spec.call).inputs.size() == 3;
  shape.dtype = spec.outputs[0].dtype;
  shape.tf32 = kTf32;
  return shape;
}

// y = x weight^T + bias + addend.
template <bool kTf32>
StatusOr<std::unique_ptr<Kernel>> MakeLinear(const KernelSpec& spec) {
  return MakeProduct(spec, LinearShape<kTf32>(spec));
}

template <bool kTf32>
StatusOr<std::unique_ptr<Kernel>> MakeLinearGelu(const KernelSpec& spec) {
  ZG_ASSIGN_OR_RETURN(GeluProduct product,
                      MakeGeluProduct(spec, LinearShape<kTf32>(spec), MatmulEpilogue::kGelu));
  return std::unique_ptr<Kernel>(std::make_unique<LinearGelu>(spec, std::move(product)));
}

// With dy (M, N), weight (N, K).
template <bool kTf32>
MatmulShape LinearGradInputShape(const KernelSpec& spec) {
  const MatrixShape dy = AsMatrix(spec.call.inputs[0].shape);
  MatmulShape shape;
  shape.rows = dy.rows;
  shape.columns = spec.call.inputs[1].shape.dim(1);
  shape.depth = dy.columns;
  shape.dtype = spec.outputs[0].dtype;
  shape.tf32 = kTf32;
  return shape;
}

// dx = dy weight + addend.
template <bool kTf32>
StatusOr<std::unique_ptr<Kernel>> MakeLinearGradInput(const KernelSpec& spec) {
  return MakeProduct(spec, LinearGradInputShape<kTf32>(spec));
}

template <bool kTf32>
StatusOr<std::unique_ptr<Kernel>> MakeLinearGradInputGelu(const KernelSpec& spec) {
  ZG_ASSIGN_OR_RETURN(GeluProduct product, MakeGeluProduct(spec, LinearGradInputShape<kTf32>(spec),
                                                           MatmulEpilogue::kGeluGrad));
  return std::unique_ptr<Kernel>(std::make_unique<LinearGradInputGelu>(spec, std::move(product)));
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
  registry.Register("linear_gelu", MakeLinearGelu<kTf32>);
  registry.Register("linear_grad_input", MakeLinearGradInput<kTf32>);
  registry.Register("linear_grad_input_gelu", MakeLinearGradInputGelu<kTf32>);
  registry.Register("linear_grad_weight", MakeLinearGradWeight<kTf32>);
}

}  // namespace

void RegisterLinearKernels(KernelRegistry& registry) {
  registry.options().tf32 ? RegisterProducts<true>(registry) : RegisterProducts<false>(registry);
  registry.Register("linear_grad_bias", MakeLinearGradBias);
}

}  // namespace zg::cuda
