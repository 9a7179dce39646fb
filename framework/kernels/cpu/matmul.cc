#include <cstdint>

#include "framework/kernels/cpu/gemm.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/matmul_batches.h"

namespace zg {
namespace {

class Matmul : public Kernel {
 public:
  explicit Matmul(const KernelSpec& spec)
      : batches_(spec),
        bytes_(SizeOf(spec.outputs[0].dtype)),
        gemm_({batches_.m, batches_.n, batches_.k, batches_.transpose_a, batches_.transpose_b,
               spec.outputs[0].dtype}) {}

  int64_t workspace_bytes() const override { return gemm_.workspace_bytes(); }

  Status Run(const KernelArguments& arguments) override {
    const int64_t a_stride = batches_.transpose_a ? batches_.m : batches_.k;
    const int64_t b_stride = batches_.transpose_b ? batches_.k : batches_.n;
    for (int64_t batch = 0; batch < batches_.count; ++batch) {
      gemm_.Run({arguments.input<char>(0) + batches_.OffsetOfA(batch) * bytes_, a_stride},
                {arguments.input<char>(1) + batches_.OffsetOfB(batch) * bytes_, b_stride}, nullptr,
                arguments.output<char>(0) + batches_.OffsetOfY(batch) * bytes_, batches_.n,
                arguments.workspace);
    }
    return Status::Ok();
  }

 private:
  const MatmulBatches batches_;
  const int64_t bytes_;
  const Gemm gemm_;
};

}  // namespace

void RegisterMatmulKernels(KernelRegistry& registry) {
  registry.Register("matmul", MakeKernel<Matmul>);
}

}  // namespace zg
