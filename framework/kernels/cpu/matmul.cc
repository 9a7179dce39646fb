#include <cstdint>

#include "framework/kernels/cpu/gemm_shared.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/matmul_batches.h"

namespace zg {
namespace {

class Matmul : public Kernel {
 public:
  explicit Matmul(const KernelSpec& spec)
      : batches_(spec),
        bytes_(SizeOf(spec.outputs[0].dtype)),
        num_ranges_(NumSharingProduct(spec.threads, batches_.count, 1,
                                      batches_.count * batches_.m * batches_.n * batches_.k)),
        gemm_({batches_.m, batches_.n, batches_.k, batches_.transpose_a, batches_.transpose_b,
               spec.outputs[0].dtype},
              shares_batches() ? 1 : spec.threads) {}

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(num_ranges(), gemm_.workspace_bytes());
  }

  Status Run(const KernelArguments& arguments) override {
    const int64_t a_stride = batches_.transpose_a ? batches_.m : batches_.k;
    const int64_t b_stride = batches_.transpose_b ? batches_.k : batches_.n;
    const auto run = [&](int64_t begin, int64_t end, int range) {
      for (int64_t batch = begin; batch < end; ++batch) {
        gemm_.Run({arguments.input<char>(0) + batches_.OffsetOfA(batch) * bytes_, a_stride},
                  {arguments.input<char>(1) + batches_.OffsetOfB(batch) * bytes_, b_stride},
                  nullptr, arguments.output<char>(0) + batches_.OffsetOfY(batch) * bytes_,
                  batches_.n, WorkspaceOf(range, arguments.workspace, gemm_.workspace_bytes()),
                  shares_batches() ? nullptr : arguments.threads);
      }
    };
    ForEqualRanges(arguments.threads, num_ranges(), batches_.count, 1, run);
    return Status::Ok();
  }

 private:
  // Threads share the batches if there are enough of them for equal shares, otherwise each product.
  bool shares_batches() const {
    return num_ranges_ > 1 &&
           (batches_.count % num_ranges_ == 0 || batches_.count > 4 * num_ranges_);
  }
  int num_ranges() const { return shares_batches() ? num_ranges_ : 1; }

  const MatmulBatches batches_;
  const int64_t bytes_;
  const int num_ranges_;
  const SharedGemm gemm_;
};

}  // namespace

void RegisterMatmulKernels(KernelRegistry& registry) {
  registry.Register("matmul", MakeKernel<Matmul>);
}

}  // namespace zg
