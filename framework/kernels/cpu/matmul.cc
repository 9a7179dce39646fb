#include <cstdint>
#include <memory>
#include <utility>

#include "framework/kernels/cpu/gemm_shared.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/math/vector_math.h"
#include "framework/kernels/matmul_batches.h"

namespace zg {
namespace {

// A product with a vector is that of the vector as a row and the transposed matrix, with the same
// memory and bits: few rows are multiplied at the speed of the memory.
bool SwapsFactors(const MatmulBatches& batches) { return batches.n == 1 && batches.m > 1; }

GemmSizes SizesOf(const MatmulBatches& batches, DType dtype) {
  GemmSizes sizes;
  sizes.k = batches.k;
  sizes.dtype = dtype;
  if (SwapsFactors(batches)) {
    sizes.m = batches.n, sizes.n = batches.m;
    sizes.transpose_a = !batches.transpose_b, sizes.transpose_b = !batches.transpose_a;
  } else {
    sizes.m = batches.m, sizes.n = batches.n;
    sizes.transpose_a = batches.transpose_a, sizes.transpose_b = batches.transpose_b;
  }
  return sizes;
}

class Matmul : public Kernel {
 public:
  explicit Matmul(const KernelSpec& spec)
      : batches_(spec),
        bytes_(SizeOf(spec.outputs[0].dtype)),
        sizes_(SizesOf(batches_, spec.outputs[0].dtype)),
        num_ranges_(
            NumSharingProduct(spec.threads, batches_.count, 1, batches_.count * CostOf(sizes_))),
        gemm_(sizes_, shares_batches() ? 1 : spec.threads) {}

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(num_ranges(), gemm_.workspace_bytes());
  }

  Status Run(const KernelArguments& arguments) override {
    const auto run = [&](int64_t begin, int64_t end, int range) {
      for (int64_t batch = begin; batch < end; ++batch) {
        GemmOperand a = {arguments.input<char>(0) + batches_.OffsetOfA(batch) * bytes_,
                         batches_.transpose_a ? batches_.m : batches_.k};
        GemmOperand b = {arguments.input<char>(1) + batches_.OffsetOfB(batch) * bytes_,
                         batches_.transpose_b ? batches_.k : batches_.n};
        if (SwapsFactors(batches_)) std::swap(a, b);
        gemm_.Run(a, b, nullptr, arguments.output<char>(0) + batches_.OffsetOfY(batch) * bytes_,
                  sizes_.n, WorkspaceOf(range, arguments.workspace, gemm_.workspace_bytes()),
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
  const GemmSizes sizes_;
  const int num_ranges_;
  const SharedGemm gemm_;
};

// Products too small for a Gemm's tiles, such as those of rotations of points. Each element is one chain
// of fused multiply-adds, as there, with the same bits.
class SmallMatmul : public Kernel {
 public:
  static bool Takes(const KernelSpec& spec) {
    constexpr int64_t kMost = 8;
    const MatmulBatches batches(spec);
    return spec.outputs[0].dtype == DType::kF32 && batches.count > 1 && batches.m <= kMost &&
           batches.n <= kMost && batches.k <= kMost;
  }

  explicit SmallMatmul(const KernelSpec& spec)
      : batches_(spec),
        num_ranges_(NumSharingProduct(spec.threads, batches_.count, 1,
                                      batches_.count * batches_.m * batches_.n * batches_.k)) {}

  Status Run(const KernelArguments& arguments) override {
    const auto* const a = arguments.input<float>(0);
    const auto* const b = arguments.input<float>(1);
    auto* const y = arguments.output<float>(0);
    ForEqualRanges(arguments.threads, num_ranges_, batches_.count, 1,
                   [&](int64_t begin, int64_t end, int) {
                     Multiversion([=]() ZG_VERSION {
                       for (int64_t batch = begin; batch < end; ++batch) {
                         Multiply(a + batches_.OffsetOfA(batch), b + batches_.OffsetOfB(batch),
                                  y + batches_.OffsetOfY(batch));
                       }
                     });
                   });
    return Status::Ok();
  }

 private:
  ZG_INLINE void Multiply(const float* a, const float* b, float* y) const {
    const int64_t a_row = batches_.transpose_a ? 1 : batches_.k;
    const int64_t a_column = batches_.transpose_a ? batches_.m : 1;
    const int64_t b_row = batches_.transpose_b ? 1 : batches_.n;
    const int64_t b_column = batches_.transpose_b ? batches_.k : 1;
    for (int64_t i = 0; i < batches_.m; ++i) {
      for (int64_t j = 0; j < batches_.n; ++j) {
        float sum = 0.0f;
        for (int64_t k = 0; k < batches_.k; ++k) {
          sum = Fused::MulAdd(a[i * a_row + k * a_column], b[k * b_row + j * b_column], sum);
        }
        *y++ = sum;
      }
    }
  }

  const MatmulBatches batches_;
  const int num_ranges_;
};

StatusOr<std::unique_ptr<Kernel>> MakeMatmul(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  if (SmallMatmul::Takes(spec)) return MakeKernel<SmallMatmul>(spec);
  return MakeKernel<Matmul>(spec);
}

}  // namespace

void RegisterMatmulKernels(KernelRegistry& registry) { registry.Register("matmul", MakeMatmul); }

}  // namespace zg
