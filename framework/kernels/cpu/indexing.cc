#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"
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

// The first index outside [0, size).
Status CheckIndices(const char* op, const int64_t* index, int64_t count, int64_t size) {
  for (int64_t i = 0; i < count; ++i) {
    if (index[i] >= 0 && index[i] < size) continue;
    return InvalidArgument("{}: the index at position {} is {}, the dim has elements 0 to {}", op,
                           i, index[i], size - 1);
  }
  return Status::Ok();
}

class Gather : public Kernel {
 public:
  explicit Gather(const KernelSpec& spec)
      : x_(spec.call.inputs[0].shape, spec.call.attributes.Int("dim")),
        y_(spec.outputs[0].shape, spec.call.attributes.Int("dim")),
        bytes_(SizeOf(spec.outputs[0].dtype)) {}

  Status Run(const KernelArguments& arguments) override {
    const int64_t* const index = arguments.input<int64_t>(1);
    ZG_RETURN_IF_ERROR(CheckIndices("gather", index, y_.outer * y_.size * y_.inner, x_.size));
    WithElements(bytes_, [&](auto zero) {
      using T = decltype(zero);
      const T* x = arguments.input<T>(0);
      T* const y = arguments.output<T>(0);
      int64_t at = 0;
      for (int64_t outer = 0; outer < y_.outer; ++outer, x += x_.size * x_.inner) {
        for (int64_t i = 0; i < y_.size; ++i) {
          for (int64_t k = 0; k < y_.inner; ++k, ++at) y[at] = x[index[at] * x_.inner + k];
        }
      }
    });
    return Status::Ok();
  }

 private:
  const DimView x_;
  const DimView y_;
  const int64_t bytes_;
};

// In 16 bits the sums for one index of the dims before are in f32, in the workspace.
class GatherGrad : public Kernel {
 public:
  explicit GatherGrad(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        dy_(spec.call.inputs[0].shape, spec.call.attributes.Int("dim")),
        dx_(spec.outputs[0].shape, spec.call.attributes.Int("dim")) {}

  int64_t workspace_bytes() const override {
    if (dtype_ == DType::kF32) return 0;
    return dx_.size * dx_.inner * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    const int64_t* const index = arguments.input<int64_t>(1);
    ZG_RETURN_IF_ERROR(
        CheckIndices("gather_grad", index, dy_.outer * dy_.size * dy_.inner, dx_.size));
    WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const T* const dy = arguments.input<T>(0);
      const int64_t count = dx_.size * dx_.inner;
      int64_t at = 0;
      for (int64_t outer = 0; outer < dy_.outer; ++outer) {
        T* const dx = arguments.output<T>(0) + outer * count;
        float* const sums = dtype_ == DType::kF32 ? reinterpret_cast<float*>(dx)
                                                  : static_cast<float*>(arguments.workspace);
        std::fill_n(sums, count, 0.0f);
        for (int64_t i = 0; i < dy_.size; ++i) {
          for (int64_t k = 0; k < dy_.inner; ++k, ++at) {
            sums[index[at] * dx_.inner + k] += ToF32(dy[at]);
          }
        }
        if (dtype_ != DType::kF32) ConvertFloats(DType::kF32, sums, dtype_, dx, count);
      }
    });
    return Status::Ok();
  }

 private:
  const DType dtype_;
  const DimView dy_;
  const DimView dx_;
};

}  // namespace

void RegisterIndexingKernels(KernelRegistry& registry) {
  registry.Register("iota", MakeKernel<Iota>);
  registry.Register("gather", MakeKernel<Gather>);
  registry.Register("gather_grad", MakeKernel<GatherGrad>);
}

}  // namespace zg
