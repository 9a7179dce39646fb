#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/dim_view.h"
#include "framework/kernels/math/cumulative_math.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// Chains of elements along the dim, side by side, which are processed together.
constexpr int64_t kChains = 64;

struct Chains {
  int64_t begin;     // the first element of the first chain
  int64_t count;     // at most kChains
  int64_t distance;  // from a chain to the next one
  int64_t size;      // elements of each
  int64_t step;      // from one element of a chain to the next
};

// Calls f(chains) for all chains of a tensor, and shares them among threads.
template <typename F>
void ForChains(const DimView& x, Threads* threads, int64_t cost, const F& f) {
  ForRanges(threads, x.outer * x.inner, 1, x.size * cost, [&](int64_t begin, int64_t end, int) {
    while (begin < end) {
      const int64_t in_row = x.inner == 1 ? kChains : std::min(kChains, x.inner - begin % x.inner);
      const int64_t count = std::min(in_row, end - begin);
      const int64_t first = begin / x.inner * x.size * x.inner + begin % x.inner;
      f(Chains{first, count, x.inner == 1 ? x.size : 1, x.size, x.inner});
      begin += count;
    }
  });
}

class CumulativeArgmax : public Kernel {
 public:
  explicit CumulativeArgmax(const KernelSpec& spec)
      : dtype_(spec.call.inputs[0].dtype),
        x_(spec.outputs[0].shape, spec.call.attributes.Int("dim")) {}

  Status Run(const KernelArguments& arguments) override {
    WithFloatType(dtype_, [&](auto zero) {
      const auto* const x = arguments.input<decltype(zero)>(0);
      int64_t* const y = arguments.output<int64_t>(0);
      ForChains(x_, arguments.threads, 1, [&](const Chains& chains) {
        float largest[kChains];
        int64_t positions[kChains];
        for (int64_t i = 0; i < chains.size; ++i) {
          for (int64_t c = 0; c < chains.count; ++c) {
            const int64_t at = chains.begin + i * chains.step + c * chains.distance;
            const float value = ToF32(x[at]);
            if (i == 0 || IsNewMaximum(value, largest[c])) {
              largest[c] = value;
              positions[c] = i;
            }
            y[at] = positions[c];
          }
        }
      });
    });
    return Status::Ok();
  }

 private:
  const DType dtype_;
  const DimView x_;
};

class LogCumsumExp : public Kernel {
 public:
  explicit LogCumsumExp(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        x_(spec.outputs[0].shape, spec.call.attributes.Int("dim")),
        reverse_(spec.call.attributes.Bool("reverse")) {}

  Status Run(const KernelArguments& arguments) override {
    WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const T* const x = arguments.input<T>(0);
      T* const y = arguments.output<T>(0);  // may be x
      ForChains(x_, arguments.threads, 8, [&](const Chains& chains) {
        float sums[kChains];
        std::fill_n(sums, kChains, -__builtin_inff());
        float values[kChains] = {};
        for (int64_t i = 0; i < chains.size; ++i) {
          const int64_t place = reverse_ ? chains.size - 1 - i : i;
          const int64_t at = chains.begin + place * chains.step;
          for (int64_t c = 0; c < chains.count; ++c) {
            values[c] = ToF32(x[at + c * chains.distance]);
          }
          Multiversion([&sums, &values]() ZG_VERSION {
            for (int64_t c = 0; c < kChains; ++c) sums[c] = LogAddExp(sums[c], values[c]);
          });
          for (int64_t c = 0; c < chains.count; ++c) {
            y[at + c * chains.distance] = FromF32<T>(sums[c]);
          }
        }
      });
    });
    return Status::Ok();
  }

 private:
  const DType dtype_;
  const DimView x_;
  const bool reverse_;
};

}  // namespace

void RegisterCumulativeKernels(KernelRegistry& registry) {
  registry.Register("cumulative_argmax", MakeKernel<CumulativeArgmax>);
  registry.Register("logcumsumexp", MakeKernel<LogCumsumExp>);
}

}  // namespace zg
