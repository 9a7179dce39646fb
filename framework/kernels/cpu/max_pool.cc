#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/kernels/pool_shape.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

// The cost of a plane, pixel by pixel.
int64_t Cost(const PoolShape& shape) { return 16 * shape.out[0] * shape.out[1]; }

class MaxPool2d : public Kernel {
 public:
  explicit MaxPool2d(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        shape_(spec.call.attributes, spec.call.inputs[0].shape, spec.outputs[0].shape) {}

  Status Run(const KernelArguments& arguments) override {
    ForRanges(arguments.threads, shape_.planes, 1, Cost(shape_),
              [&](int64_t begin, int64_t end, int) { RunPlanes(arguments, begin, end); });
    return Status::Ok();
  }

 private:
  void RunPlanes(const KernelArguments& arguments, int64_t begin, int64_t end) const {
    WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const int64_t pixels = shape_.in[0] * shape_.in[1];
      const T* x = arguments.input<T>(0) + begin * pixels;
      T* y = arguments.output<T>(0) + begin * shape_.out[0] * shape_.out[1];
      for (int64_t plane = begin; plane < end; ++plane, x += pixels) {
        for (int64_t i = 0; i < shape_.out[0]; ++i) {
          for (int64_t j = 0; j < shape_.out[1]; ++j) {
            *y++ = FromF32<T>(shape_.LargestOf(x, i, j).value);
          }
        }
      }
    });
  }

  const DType dtype_;
  const PoolShape shape_;
};

class MaxPool2dGrad : public Kernel {
 public:
  explicit MaxPool2dGrad(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        shape_(spec.call.attributes, spec.call.inputs[1].shape, spec.call.inputs[0].shape),
        threads_(spec.threads) {}

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, shape_.planes, 1, Cost(shape_)), BytesOfThread());
  }

  Status Run(const KernelArguments& arguments) override {
    ForRanges(arguments.threads, shape_.planes, 1, Cost(shape_),
              [&](int64_t begin, int64_t end, int thread) {
                RunPlanes(arguments, begin, end,
                          WorkspaceOf(thread, arguments.workspace, BytesOfThread()));
              });
    return Status::Ok();
  }

 private:
  int64_t pixels() const { return shape_.in[0] * shape_.in[1]; }
  // The sums of a plane.
  int64_t BytesOfThread() const { return pixels() * static_cast<int64_t>(sizeof(float)); }

  void RunPlanes(const KernelArguments& arguments, int64_t begin, int64_t end,
                 void* workspace) const {
    float* const sums = static_cast<float*>(workspace);
    WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const T* dy = arguments.input<T>(0) + begin * shape_.out[0] * shape_.out[1];
      for (int64_t plane = begin; plane < end; ++plane) {
        const T* const x = arguments.input<T>(1) + plane * pixels();
        std::fill_n(sums, pixels(), 0.0f);
        for (int64_t i = 0; i < shape_.out[0]; ++i) {
          for (int64_t j = 0; j < shape_.out[1]; ++j) {
            const int64_t index = shape_.LargestOf(x, i, j).index;
            const float gradient = ToF32(*dy++);
            if (index >= 0) sums[index] += gradient;  // a dilated window may be entirely outside
          }
        }
        ConvertFloats(DType::kF32, sums, dtype_, arguments.output<T>(0) + plane * pixels(),
                      pixels());
      }
    });
  }

  const DType dtype_;
  const PoolShape shape_;
  const int threads_;
};

}  // namespace

void RegisterMaxPoolKernels(KernelRegistry& registry) {
  registry.Register("max_pool2d", MakeKernel<MaxPool2d>);
  registry.Register("max_pool2d_grad", MakeKernel<MaxPool2dGrad>);
}

}  // namespace zg
