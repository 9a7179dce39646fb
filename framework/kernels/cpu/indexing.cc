#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/check_indices.h"
#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/dim_view.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

class Iota : public Kernel {
 public:
  explicit Iota(const KernelSpec& spec)
      : size_(spec.call.attributes.Int("size")),
        start_(spec.call.attributes.Int("start")),
        step_(spec.call.attributes.Int("step")) {}

  Status Run(const KernelArguments& arguments) override {
    int64_t* const y = arguments.output<int64_t>(0);
    for (int64_t i = 0; i < size_; ++i) y[i] = start_ + i * step_;
    return Status::Ok();
  }

 private:
  const int64_t size_;
  const int64_t start_;
  const int64_t step_;
};

class Gather : public Kernel {
 public:
  explicit Gather(const KernelSpec& spec)
      : x_(spec.call.inputs[0].shape, spec.call.attributes.Int("dim")),
        y_(spec.outputs[0].shape, spec.call.attributes.Int("dim")),
        bytes_(SizeOf(spec.outputs[0].dtype)) {}

  Status Run(const KernelArguments& arguments) override {
    const int64_t* const index = arguments.input<int64_t>(1);
    ZG_RETURN_IF_ERROR(CheckIndices("gather", index, y_.outer * y_.size * y_.inner, x_.size));
    // Rows of the dims after `dim`.
    ForRanges(arguments.threads, y_.outer * y_.size, 1, 2 * y_.inner,
              [&](int64_t begin, int64_t end, int) {
                WithElements(bytes_, [&](auto zero) {
                  using T = decltype(zero);
                  RunRows(arguments.input<T>(0), index, begin, end, arguments.output<T>(0));
                });
              });
    return Status::Ok();
  }

 private:
  template <typename T>
  void RunRows(const T* x, const int64_t* index, int64_t begin, int64_t end, T* y) const {
    while (begin < end) {  // those of one index of the dims before `dim`
      const int64_t outer = begin / y_.size;
      const int64_t count = std::min(end, (outer + 1) * y_.size) - begin;
      const int64_t at = begin * y_.inner;
      CopyIndexed(x + outer * x_.size * x_.inner, index + at, count, y + at);
      begin += count;
    }
  }

  template <typename T>
  void CopyIndexed(const T* x, const int64_t* index, int64_t rows, T* y) const {
    const int64_t inner = y_.inner;
    if (inner == 1) {
      for (int64_t i = 0; i < rows; ++i) y[i] = x[index[i]];
      return;
    }
    for (int64_t row = 0; row < rows; ++row, index += inner, y += inner) {
      for (int64_t k = 0; k < inner; ++k) y[k] = x[index[k] * inner + k];
    }
  }

  const DimView x_;
  const DimView y_;
  const int64_t bytes_;
};

// In 16 bits the sums for one index of the dims before `dim` are in f32, in the workspace.
class GatherGrad : public Kernel {
 public:
  explicit GatherGrad(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        dy_(spec.call.inputs[0].shape, spec.call.attributes.Int("dim")),
        dx_(spec.outputs[0].shape, spec.call.attributes.Int("dim")),
        threads_(spec.threads) {}

  int64_t workspace_bytes() const override {
    if (dtype_ == DType::kF32) return 0;
    return WorkspaceBytes(NumSharing(threads_, dy_.outer, 1, Cost()), BytesOfThread());
  }

  Status Run(const KernelArguments& arguments) override {
    const int64_t* const index = arguments.input<int64_t>(1);
    ZG_RETURN_IF_ERROR(
        CheckIndices("gather_grad", index, dy_.outer * dy_.size * dy_.inner, dx_.size));
    ForRanges(arguments.threads, dy_.outer, 1, Cost(), [&](int64_t begin, int64_t end, int thread) {
      RunRange(arguments, begin, end, WorkspaceOf(thread, arguments.workspace, BytesOfThread()));
    });
    return Status::Ok();
  }

 private:
  int64_t Cost() const { return 2 * (dy_.size * dy_.inner + dx_.size * dx_.inner); }
  int64_t BytesOfThread() const {
    return dx_.size * dx_.inner * static_cast<int64_t>(sizeof(float));
  }

  // Indices [begin, end) of the dims before `dim`.
  void RunRange(const KernelArguments& arguments, int64_t begin, int64_t end,
                void* workspace) const {
    const int64_t* const index = arguments.input<int64_t>(1);
    WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const T* const dy = arguments.input<T>(0);
      const int64_t count = dx_.size * dx_.inner;
      int64_t at = begin * dy_.size * dy_.inner;
      for (int64_t outer = begin; outer < end; ++outer) {
        T* const dx = arguments.output<T>(0) + outer * count;
        float* const sums =
            dtype_ == DType::kF32 ? reinterpret_cast<float*>(dx) : static_cast<float*>(workspace);
        std::fill_n(sums, count, 0.0f);
        if (dy_.inner == 1) {
          for (int64_t i = 0; i < dy_.size; ++i, ++at) sums[index[at]] += ToF32(dy[at]);
        } else {
          for (int64_t i = 0; i < dy_.size; ++i) {
            for (int64_t k = 0; k < dy_.inner; ++k, ++at) {
              sums[index[at] * dx_.inner + k] += ToF32(dy[at]);
            }
          }
        }
        if (dtype_ != DType::kF32) ConvertFloats(DType::kF32, sums, dtype_, dx, count);
      }
    });
  }

  const DType dtype_;
  const DimView dy_;
  const DimView dx_;
  const int threads_;
};

}  // namespace

void RegisterIndexingKernels(KernelRegistry& registry) {
  registry.Register("iota", MakeKernel<Iota>);
  registry.Register("gather", MakeKernel<Gather>);
  registry.Register("gather_grad", MakeKernel<GatherGrad>);
}

}  // namespace zg
