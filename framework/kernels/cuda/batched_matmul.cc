#include <cstdint>
#include <memory>
#include <utility>

#include "framework/kernels/cuda/kernel_util.h"
#include "framework/kernels/cuda/matmul.h"
#include "framework/kernels/matmul_batches.h"

namespace zg::cuda {
namespace {

// One product after the other.
class BatchedMatmul : public Kernel {
 public:
  BatchedMatmul(const KernelSpec& spec, std::unique_ptr<Matmul> matmul)
      : batches_(spec), bytes_(SizeOf(spec.outputs[0].dtype)), matmul_(std::move(matmul)) {}

  int64_t workspace_bytes() const override { return matmul_->workspace_bytes(); }

  Status Run(const KernelArguments& arguments) override {
    for (int64_t batch = 0; batch < batches_.count; ++batch) {
      ZG_RETURN_IF_ERROR(
          matmul_->Run({arguments.input<char>(0) + batches_.OffsetOfA(batch) * bytes_,
                        arguments.input<char>(1) + batches_.OffsetOfB(batch) * bytes_, nullptr,
                        arguments.output<char>(0) + batches_.OffsetOfY(batch) * bytes_},
                       arguments.workspace, arguments.stream));
    }
    return Status::Ok();
  }

 private:
  const MatmulBatches batches_;
  const int64_t bytes_;
  const std::unique_ptr<Matmul> matmul_;
};

template <bool kTf32>
StatusOr<std::unique_ptr<Kernel>> MakeBatchedMatmul(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCudaTypes(spec));
  const MatmulBatches batches(spec);
  MatmulShape shape;
  shape.rows = batches.m;
  shape.columns = batches.n;
  shape.depth = batches.k;
  shape.transpose_a = batches.transpose_a;
  shape.transpose_b = batches.transpose_b;
  shape.dtype = spec.outputs[0].dtype;
  shape.tf32 = kTf32;
  ZG_ASSIGN_OR_RETURN(std::unique_ptr<Matmul> matmul, Matmul::Make(shape, spec.gemm_choices));
  return std::unique_ptr<Kernel>(std::make_unique<BatchedMatmul>(spec, std::move(matmul)));
}

}  // namespace

void RegisterMatmulKernels(KernelRegistry& registry) {
  registry.Register("matmul",
                    registry.options().tf32 ? MakeBatchedMatmul<true> : MakeBatchedMatmul<false>);
}

}  // namespace zg::cuda
