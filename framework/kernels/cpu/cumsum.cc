#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "framework/base/instruction_set.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/prefetch.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/cpu/transpose.h"
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
    for (int64_t run = 0; run < count; run += kPrefetchRun) {
      const int64_t end = std::min(run + kPrefetchRun, count);
      PrefetchRow<0>(x + run + kPrefetchAhead, end - run);
      PrefetchRow<1>(y + run + kPrefetchAhead, end - run);
      ZG_INDEPENDENT
      for (int64_t k = run; k < end; ++k) {
        sums[k] += NumberOf(x[k]);
        y[k] = ElementFrom<T>::Of(sums[k]);
      }
    }
  });
}

// Adds neighbouring elements to `sum`, and writes its values to y; returns the last one. y may be x.
template <typename T>
SumOf<T> SumRow(const T* x, int64_t size, bool reverse, SumOf<T> sum, T* y) {
  const int64_t step = reverse ? -1 : 1;
  int64_t at = reverse ? size - 1 : 0;
  for (int64_t i = 0; i < size; ++i, at += step) {
    sum += NumberOf(x[at]);
    y[at] = ElementFrom<T>::Of(sum);
  }
  return sum;
}

// The same for kLanes rows, which begin at 0. They are the lanes of a vector, because in a single
// row every addition waits for the one before it.
template <bool kReverse, typename T>
void SumRows(const T* x, int64_t size, T* y) {
  const int64_t whole = size / kLanes * kLanes;
  float sums[kLanes];
  Multiversion([=, to = &sums[0]]() ZG_VERSION {
    Lanes sum = {};
    for (int64_t done = 0; done < whole; done += kLanes) {
      const int64_t begin = kReverse ? size - kLanes - done : done;
      Lanes square[kLanes];
      for (int i = 0; i < kLanes; ++i) square[i] = LoadLanes(x + i * size + begin);
      Transpose(square);
      for (int i = 0; i < kLanes; ++i) {
        Lanes& column = square[kReverse ? kLanes - 1 - i : i];
        column += sum;
        sum = column;
      }
      StoreTransposed(square, size, y + begin);
    }
    StoreLanes(sum, to);
  });
  const int64_t rest = kReverse ? 0 : whole;
  for (int i = 0; i < kLanes; ++i) {
    const int64_t at = i * size + rest;
    SumRow(x + at, size - whole, kReverse, sums[i], y + at);
  }
}

class Cumsum : public Kernel {
 public:
  explicit Cumsum(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        x_(spec.outputs[0].shape, spec.call.attributes.Int("dim")),
        reverse_(spec.call.attributes.Bool("reverse")),
        threads_(spec.threads) {
    // Narrower vectors are not transposed faster than elements are added one by one.
    const bool in_lanes = x_.inner == 1 && x_.outer >= kLanes && IsFloat(dtype_) &&
                          VectorInstructionSet() == InstructionSet::kAvx512;
    unit_ = in_lanes ? kLanes : 1;
  }

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, x_.outer, unit_, x_.size * x_.inner),
                          BytesOfThread());
  }

  Status Run(const KernelArguments& arguments) override {
    const int64_t count = x_.size * x_.inner;
    ForRanges(arguments.threads, x_.outer, unit_, count,
              [&](int64_t begin, int64_t end, int thread) {
                void* const workspace = WorkspaceOf(thread, arguments.workspace, BytesOfThread());
                WithAnyType(dtype_, [&](auto zero) {
                  using T = decltype(zero);
                  const T* const x = arguments.input<T>(0);
                  T* const y = arguments.output<T>(0);
                  if constexpr (std::is_same_v<SumOf<T>, float>) {
                    for (; unit_ == kLanes && begin + kLanes <= end; begin += kLanes) {
                      (reverse_ ? SumRows<true, T> : SumRows<false, T>)(x + begin * count, count,
                                                                        y + begin * count);
                    }
                  }
                  auto* const sums = static_cast<SumOf<T>*>(workspace);
                  for (; begin < end; ++begin) RunOne(x + begin * count, sums, y + begin * count);
                });
              });
    return Status::Ok();
  }

 private:
  int64_t BytesOfThread() const { return x_.inner * std::max<int64_t>(4, SizeOf(dtype_)); }

  template <typename T>
  void RunOne(const T* x, SumOf<T>* sums, T* y) const {
    if (x_.inner == 1) {
      SumRow(x, x_.size, reverse_, SumOf<T>{0}, y);
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
  int64_t unit_;  // rows that are added up together
};

}  // namespace

void RegisterCumsumKernels(KernelRegistry& registry) {
  registry.Register("cumsum", MakeKernel<Cumsum>);
}

}  // namespace zg
