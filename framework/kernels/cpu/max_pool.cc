#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/pool_shape.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

class MaxPool2d : public Kernel {
 public:
  explicit MaxPool2d(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        shape_(spec.call.attributes, spec.call.inputs[0].shape, spec.outputs[0].shape) {}

  Status Run(const KernelArguments& arguments) override {
    WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const T* x = arguments.input<T>(0);
      T* y = arguments.output<T>(0);
      for (int64_t plane = 0; plane < shape_.planes; ++plane, x += shape_.in[0] * shape_.in[1]) {
        for (int64_t i = 0; i < shape_.out[0]; ++i) {
          for (int64_t j = 0; j < shape_.out[1]; ++j) {
            *y++ = FromF32<T>(shape_.LargestOf(x, i, j).value);
          }
        }
      }
    });
    return Status::Ok();
  }

 private:
  const DType dtype_;
  const PoolShape shape_;
};

class MaxPool2dGrad : public Kernel {
 public:
  explicit MaxPool2dGrad(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        shape_(spec.call.attributes, spec.call.inputs[1].shape, spec.call.inputs[0].shape) {}

  // The sums of a plane.
  int64_t workspace_bytes() const override {
    return pixels() * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    float* const sums = static_cast<float*>(arguments.workspace);
    WithFloatType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const T* dy = arguments.input<T>(0);
      for (int64_t plane = 0; plane < shape_.planes; ++plane) {
        const T* const x = arguments.input<T>(1) + plane * pixels();
        std::fill_n(sums, pixels(), 0.0f);
        for (int64_t i = 0; i < shape_.out[0]; ++i) {
          for (int64_t j = 0; j < shape_.out[1]; ++j) {
            const int64_t index = shape_.LargestOf(x, i, j).index;
            const float gradient = ToF32(*dy++);
            if (index >= 0) sums[index] += gradient;  // a dilated window may lie outside
          }
        }
        ConvertFloats(DType::kF32, sums, dtype_, arguments.output<T>(0) + plane * pixels(),
                      pixels());
      }
    });
    return Status::Ok();
  }

 private:
  int64_t pixels() const { return shape_.in[0] * shape_.in[1]; }

  const DType dtype_;
  const PoolShape shape_;
};

}  // namespace

void RegisterMaxPoolKernels(KernelRegistry& registry) {
  registry.Register("max_pool2d", MakeKernel<MaxPool2d>);
  registry.Register("max_pool2d_grad", MakeKernel<MaxPool2dGrad>);
}

}  // namespace zg
