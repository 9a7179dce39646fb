// PairKernel: a kernel that computes each element of its result from one or two broadcast operands
// of one dtype, block by block. In the place of a missing second operand is a number, repeated.
#pragma once

#include <cstdint>
#include <cstring>

#include "framework/kernels/cpu/broadcast_blocks.h"
#include "framework/kernels/cpu/kernel_util.h"

namespace zg {

template <typename Result>
class PairKernel : public Kernel {
 public:
  using Function = void (*)(const void* const* operands, int64_t count, Result* y);

  // `number`: an element of the operands' dtype; not read if there are two operands.
  template <typename T>
  PairKernel(const KernelSpec& spec, Function run, T number)
      : run_(run),
        has_two_(spec.call.inputs.size() == 2),
        threads_(spec.threads),
        blocks_(spec.outputs[0].shape,
                {&spec.call.inputs[0].shape, has_two_ ? &spec.call.inputs[1].shape : &scalar_},
                {sizeof(T), sizeof(T)}) {
    static_assert(sizeof(T) <= sizeof(number_));
    std::memcpy(number_, &number, sizeof(T));
  }

  int64_t workspace_bytes() const override { return blocks_.workspace_bytes(threads_); }

  Status Run(const KernelArguments& arguments) override {
    const void* const inputs[] = {
        arguments.inputs[0], has_two_ ? arguments.inputs[1] : static_cast<const void*>(number_)};
    Result* const y = arguments.output<Result>(0);
    KernelArguments of_both = arguments;
    of_both.inputs = inputs;
    blocks_.ForEach(of_both, [&](const void* const* operands, int64_t begin, int64_t count) {
      run_(operands, count, y + begin);
    });
    return Status::Ok();
  }

 private:
  const Function run_;
  const bool has_two_;
  const int threads_;
  const Shape scalar_;
  const BroadcastBlocks<2> blocks_;
  alignas(8) char number_[8] = {};
};

}  // namespace zg
