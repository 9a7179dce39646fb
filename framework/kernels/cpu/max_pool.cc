#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/cpu/window_maxima.h"
#include "framework/kernels/pool_shape.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

template <bool kIsGradient>
class MaxPool2d : public Kernel {
 public:
  explicit MaxPool2d(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        shape_(spec.call.attributes, spec.call.inputs[kIsGradient ? 1 : 0].shape,
               kIsGradient ? spec.call.inputs[0].shape : spec.outputs[0].shape),
        maxima_(shape_),
        threads_(spec.threads) {}

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, shape_.planes, 1, Cost()), BytesOfThread());
  }

  Status Run(const KernelArguments& arguments) override {
    ForRanges(arguments.threads, shape_.planes, 1, Cost(),
              [&](int64_t begin, int64_t end, int thread) {
                void* const workspace = WorkspaceOf(thread, arguments.workspace, BytesOfThread());
                WithFloatType(dtype_, [&](auto zero) {
                  RunPlanes<decltype(zero)>(arguments, begin, end, static_cast<float*>(workspace));
                });
              });
    return Status::Ok();
  }

 private:
  int64_t in_pixels() const { return shape_.in[0] * shape_.in[1]; }
  int64_t out_pixels() const { return shape_.out[0] * shape_.out[1]; }
  // The cost of a plane, pixel by pixel.
  int64_t Cost() const { return 16 * out_pixels(); }
  // The sums of a plane are in f32.
  bool HasSums() const { return kIsGradient && dtype_ != DType::kF32; }
  int64_t BytesOfThread() const {
    return (maxima_.scratch_floats() + (HasSums() ? in_pixels() : 0)) *
           static_cast<int64_t>(sizeof(float));
  }

  template <typename T>
  void RunPlanes(const KernelArguments& arguments, int64_t begin, int64_t end,
                 float* workspace) const {
    const WindowMaxima::Scratch scratch = maxima_.MakeScratch(workspace);
    for (int64_t plane = begin; plane < end; ++plane) {
      if constexpr (!kIsGradient) {
        WriteMaxima(arguments.input<T>(0) + plane * in_pixels(), scratch,
                    arguments.output<T>(0) + plane * out_pixels());
      } else {
        T* const dx = arguments.output<T>(0) + plane * in_pixels();
        float* const sums = HasSums() ? workspace + maxima_.scratch_floats()
                                      : arguments.output<float>(0) + plane * in_pixels();
        std::fill_n(sums, in_pixels(), 0.0f);
        AddGradients(arguments.input<T>(0) + plane * out_pixels(),
                     arguments.input<T>(1) + plane * in_pixels(), scratch, sums);
        if (HasSums()) ConvertFloats(DType::kF32, sums, dtype_, dx, in_pixels());
      }
    }
  }

  template <typename T>
  void WriteMaxima(const T* x, const WindowMaxima::Scratch& scratch, T* y) const {
    Multiversion([=]() ZG_VERSION {
      const int64_t columns = shape_.out[1];
      const float* const largest = scratch.row.values;
      maxima_.ForEachRow<false>(
          x, scratch, [=](int64_t i) __attribute__((always_inline)) {
            T* const row = y + i * columns;
            ZG_INDEPENDENT
            for (int64_t j = 0; j < columns; ++j) row[j] = FromF32<T>(largest[j]);
          });
    });
  }

  template <typename T>
  void AddGradients(const T* dy, const T* x, const WindowMaxima::Scratch& scratch,
                    float* sums) const {
    Multiversion([=]() ZG_VERSION {
      const int64_t columns = shape_.out[1];
      const int32_t* const indices = scratch.row.indices;
      maxima_.ForEachRow<true>(
          x, scratch, [=](int64_t i) __attribute__((always_inline)) {
            const T* const row = dy + i * columns;
            for (int64_t j = 0; j < columns; ++j) {
              int64_t index = indices[j];
              // Which of many -infinities is the first, is rarely asked.
              if (index < 0) index = shape_.LargestOf(x, i, j).index;
              if (index < 0) continue;  // a dilated window may be entirely outside
              sums[index] += ToF32(row[j]);
            }
          });
    });
  }

  const DType dtype_;
  const PoolShape shape_;
  const WindowMaxima maxima_;
  const int threads_;
};

}  // namespace

void RegisterMaxPoolKernels(KernelRegistry& registry) {
  registry.Register("max_pool2d", MakeKernel<MaxPool2d<false>>);
  registry.Register("max_pool2d_grad", MakeKernel<MaxPool2d<true>>);
}

}  // namespace zg
