// Registers the kernels of single elementwise ops.
#pragma once

#include "framework/kernels/cuda/kernel_util.h"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/math/elementwise_math.h"

namespace zg::cuda {

// The output may be one of the inputs.
template <ElementwiseCode kCode, typename T>
struct ElementwiseBody {
  const T* a;
  const T* b;  // `a` for ops of one input
  T* y;
  float scalar;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
    const Floats<kCount> left = LoadFloats<kCount>(a + begin);
    const Floats<kCount> right = LoadFloats<kCount>(b + begin);
    Floats<kCount> result;
#pragma unroll
    for (int i = 0; i < kCount; ++i) result[i] = Evaluate(kCode, left[i], right[i], scalar);
    StoreFloats(result, y + begin);
  }
};

template <ElementwiseCode kCode>
class ElementwiseKernel : public Kernel {
 public:
  explicit ElementwiseKernel(const KernelSpec& spec)
      : type_(spec.outputs[0]), has_two_inputs_(spec.call.inputs.size() == 2) {
    if constexpr (kCode == ElementwiseCode::kScale) {
      scalar_ = static_cast<float>(spec.call.attributes.Float("factor"));
    }
  }

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(type_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const ElementwiseBody<kCode, T> body = {arguments.input<T>(0),
                                              arguments.input<T>(has_two_inputs_ ? 1 : 0),
                                              arguments.output<T>(0), scalar_};
      return RunPacks<kPackOf<T>>(body, AreAligned(16, body.a, body.b, body.y),
                                  type_.shape.num_elements(), arguments.stream);
    });
  }

 private:
  const TensorType type_;
  const bool has_two_inputs_;
  float scalar_ = 0.0f;
};

}  // namespace zg::cuda
