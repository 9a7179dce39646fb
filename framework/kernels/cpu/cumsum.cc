#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/dim_view.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// Adds x to sums, and writes their values to y. y may be x.
template <typename T>
void AddRow(const T* x, int64_t count, float* sums, T* y) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t k = 0; k < count; ++k) {
      sums[k] += ToF32(x[k]);
      y[k] = FromF32<T>(sums[k]);
    }
  });
}

class Cumsum : public Kernel {
 public:
  explicit Cumsum(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        x_(spec.outputs[0].shape, spec.call.attributes.Int("dim")),
        reverse_(spec.call.attributes.Bool("reverse")),
        threads_(spec.threads) {}

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, x_.outer, 1, x_.size * x_.inner), BytesOfThread());
  }

  Status Run(const KernelArguments& arguments) override {
    const int64_t count = x_.size * x_.inner;
    ForRanges(arguments.threads, x_.outer, 1, count, [&](int64_t begin, int64_t end, int thread) {
      auto* const sums =
          static_cast<float*>(WorkspaceOf(thread, arguments.workspace, BytesOfThread()));
      WithFloatType(dtype_, [&](auto zero) {
        using T = decltype(zero);
        for (int64_t first = begin * count; first < end * count; first += count) {
          RunOne(arguments.input<T>(0) + first, sums, arguments.output<T>(0) + first);
        }
      });
    });
    return Status::Ok();
  }

 private:
  int64_t BytesOfThread() const { return x_.inner * static_cast<int64_t>(sizeof(float)); }

  template <typename T>
  void RunOne(const T* x, float* sums, T* y) const {
    if (x_.inner == 1) {
      float sum = 0.0f;
      for (int64_t i = 0; i < x_.size; ++i) {
        const int64_t at = reverse_ ? x_.size - 1 - i : i;
        sum += ToF32(x[at]);
        y[at] = FromF32<T>(sum);
      }
      return;
    }
    std::fill_n(sums, x_.inner, 0.0f);
    for (int64_t i = 0; i < x_.size; ++i) {
      const int64_t row = (reverse_ ? x_.size - 1 - i : i) * x_.inner;
      AddRow(x + row, x_.inner, sums, y + row);
    }
  }

  const DType dtype_;
  const DimView x_;
  const bool reverse_;
  const int threads_;
};

}  // namespace

void RegisterCumsumKernels(KernelRegistry& registry) {
  registry.Register("cumsum", MakeKernel<Cumsum>);
}

}  // namespace zg
