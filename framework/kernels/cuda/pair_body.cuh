// PairBody: each element of a result from one or two broadcast operands of one dtype; in the place
// of a missing second operand is a number. `Function` maps two elements to one: Result operator()(T,
// T) const.
#pragma once

#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/kernel.h"
#include "framework/kernels/strided_dims.h"

namespace zg::cuda {

template <typename Function, typename T, typename Result>
struct PairBody {
  Function function;
  const T* a;
  const T* b;  // null for a number
  Result* y;
  T number;
  StridedDims<2> dims;

  template <int kCount>
  __device__ void Run(int64_t begin) const {
    Pack<Result, kCount> pack;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const T left = a[dims.OffsetOf(0, begin + i)];
      const T right = b == nullptr ? number : b[dims.OffsetOf(1, begin + i)];
      pack.values[i] = function(left, right);
    }
    *reinterpret_cast<Pack<Result, kCount>*>(y + begin) = pack;
  }
};

// The shapes of such a call.
class PairCall {
 public:
  explicit PairCall(const KernelSpec& spec)
      : has_two_(spec.call.inputs.size() == 2),
        num_elements_(spec.outputs[0].shape.num_elements()),
        dims_(BroadcastDims<2>(spec.outputs[0].shape,
                               {&spec.call.inputs[0].shape, &spec.call.inputs.back().shape})) {}

  // kPack results are stored at once.
  template <int kPack, typename Result, typename Function, typename T>
  Status Run(const KernelArguments& arguments, Function function, T number) const {
    const PairBody<Function, T, Result> body = {function,
                                                arguments.input<T>(0),
                                                has_two_ ? arguments.input<T>(1) : nullptr,
                                                arguments.output<Result>(0),
                                                number,
                                                dims_};
    return RunPacks<kPack>(body, AreAligned(kPack * sizeof(Result), body.y), num_elements_,
                           arguments.stream);
  }

 private:
  const bool has_two_;
  const int64_t num_elements_;
  const StridedDims<2> dims_;
};

}  // namespace zg::cuda
