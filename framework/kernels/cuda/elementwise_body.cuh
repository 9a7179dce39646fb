// The kernel of one elementwise op, a row of framework/ops/elementwise.inc.
#pragma once

#include "framework/kernels/cuda/kernel_util.h"
#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/math/elementwise_math.h"
#include "framework/kernels/strided_dims.h"

namespace zg::cuda {

// The output may be one of the inputs.
template <ElementwiseCode kCode, typename T>
struct ElementwiseBody {
  const T* a;
  const T* b;  // `a` for ops with one input
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

struct ElementwiseOperands {
  const void* a;
  const void* b;  // `a` for ops with one input
  void* y;
  float scalar = 0.0f;
};

template <ElementwiseCode kCode>
Status RunElementwise(const TensorType& type, const ElementwiseOperands& operands, void* stream) {
  return WithFloatType(type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const ElementwiseBody<kCode, T> body = {static_cast<const T*>(operands.a),
                                            static_cast<const T*>(operands.b),
                                            static_cast<T*>(operands.y), operands.scalar};
    return RunPacks<kPackOf<T>>(body, AreAligned(16, body.a, body.b, body.y),
                                type.shape.num_elements(), stream);
  });
}

// For broadcast operands: one kernel for all ops, because memory limits it more than the selection
// of the op.
Status RunBroadcast(ElementwiseCode code, const TensorType& type, const StridedDims<2>& dims,
                    const ElementwiseOperands& operands, void* stream);

class ElementwiseKernel : public Kernel {
 public:
  using RunFunction = Status (*)(const TensorType&, const ElementwiseOperands&, void* stream);

  // `run` is RunElementwise<code>.
  ElementwiseKernel(const KernelSpec& spec, ElementwiseCode code, RunFunction run)
      : code_(code),
        run_(run),
        type_(spec.outputs[0]),
        has_two_inputs_(spec.call.inputs.size() == 2) {
    const std::string_view attribute = RowOf(code).attribute;
    if (!attribute.empty()) scalar_ = static_cast<float>(spec.call.attributes.Float(attribute));
    const Shape& first = spec.call.inputs[0].shape;
    const Shape& last = spec.call.inputs.back().shape;
    is_broadcast_ = first != last;
    if (is_broadcast_) dims_ = BroadcastDims<2>(type_.shape, {&first, &last});
  }

  Status Run(const KernelArguments& arguments) override {
    const ElementwiseOperands operands = {arguments.inputs[0],
                                          arguments.inputs[has_two_inputs_ ? 1 : 0],
                                          arguments.outputs[0], scalar_};
    if (is_broadcast_) return RunBroadcast(code_, type_, dims_, operands, arguments.stream);
    return run_(type_, operands, arguments.stream);
  }

 private:
  const ElementwiseCode code_;
  const RunFunction run_;
  const TensorType type_;
  const bool has_two_inputs_;
  bool is_broadcast_ = false;
  StridedDims<2> dims_;
  float scalar_ = 0.0f;
};

}  // namespace zg::cuda
