#include "framework/kernels/cuda/column_sum.cuh"
#include "framework/kernels/cuda/column_sum.h"

namespace zg::cuda {

int64_t ColumnSum::workspace_bytes() const { return ColumnSumWorkspace(shape_, 1); }

Status ColumnSum::Run(const KernelArguments& arguments) {
  return WithFloatType(dtype_, [&](auto zero) {
    using T = decltype(zero);
    constexpr int kPack = kPackOf<T>;
    const T* const x = arguments.input<T>(0);
    const bool is_aligned = shape_.columns % kPack == 0 && AreAligned(16, x);
    return SumColumns<kPack>(ElementTerms<T>{x, shape_.columns}, shape_, is_aligned,
                             arguments.workspace, ColumnSumOutputs<T, 1>{{arguments.output<T>(0)}},
                             arguments.stream);
  });
}

}  // namespace zg::cuda
