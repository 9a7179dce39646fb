#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/dim_view.h"
#include "framework/kernels/math/any_element.h"

namespace zg {
namespace {

// f32, or i64.
template <typename T>
using SumOf = decltype(NumberOf(T()));

// Adds x to sums, and writes their values to y. y may be x.
template <typename T>
void AddRow(const T* x, int64_t count, SumOf<T>* sums, T* y) {
  Multiversion([=]() ZG_VERSION {
    ZG_INDEPENDENT
    for (int64_t k = 0; k < count; ++k) {
      sums[k] += NumberOf(x[k]);
      y[k] = ElementFrom<T>::Of(sums[k]);
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
      void* const workspace = WorkspaceOf(thread, arguments.workspace, BytesOfThread());
      WithAnyType(dtype_, [&](auto zero) {
        using T = decltype(zero);
        auto* const sums = static_cast<SumOf<T>*>(workspace);
        for (int64_t first = begin * count; first < end * count; first += count) {
          RunOne(arguments.input<T>(0) + first, sums, arguments.output<T>(0) + first);
        }
      });
    });
    return Status::Ok();
  }

 private:
  int64_t BytesOfThread() const { return x_.inner * std::max<int64_t>(4, SizeOf(dtype_)); }

  template <typename T>
  void RunOne(const T* x, SumOf<T>* sums, T* y) const {
    if (x_.inner == 1) {
      SumOf<T> sum = 0;
      for (int64_t i = 0; i < x_.size; ++i) {
        const int64_t at = reverse_ ? x_.size - 1 - i : i;
        sum += NumberOf(x[at]);
        y[at] = ElementFrom<T>::Of(sum);
      }
      return;
    }
    std::fill_n(sums, x_.inner, SumOf<T>{0});
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
