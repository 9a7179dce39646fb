#include <cstdint>

#include "framework/kernels/cpu/column_sum.h"
#include "framework/kernels/cpu/elementwise_blocks.h"
#include "framework/kernels/cpu/kernel_util.h"

namespace zg {
namespace {

// y[l, r] = x[l, r] + bias[r].
class AddBroadcast : public Kernel {
 public:
  explicit AddBroadcast(const KernelSpec& spec)
      : add_(FunctionOf(ElementwiseCode::kAdd, spec.outputs[0].dtype)),
        columns_(spec.call.inputs[1].shape.num_elements()),
        rows_(columns_ == 0 ? 0 : spec.outputs[0].shape.num_elements() / columns_),
        row_bytes_(columns_ * SizeOf(spec.outputs[0].dtype)) {}

  Status Run(const KernelArguments& arguments) override {
    for (int64_t row = 0; row < rows_; ++row) {
      const void* const inputs[] = {arguments.input<char>(0) + row * row_bytes_,
                                    arguments.inputs[1]};
      add_(inputs, 0.0f, columns_, arguments.output<char>(0) + row * row_bytes_);
    }
    return Status::Ok();
  }

 private:
  const ElementwiseFunction add_;
  const int64_t columns_;
  const int64_t rows_;
  const int64_t row_bytes_;
};

// y[r] = sum over l of x[l, r].
class SumLeading : public Kernel {
 public:
  explicit SumLeading(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        columns_(spec.outputs[0].shape.num_elements()),
        rows_(columns_ == 0 ? 0 : spec.call.inputs[0].shape.num_elements() / columns_) {}

  Status Run(const KernelArguments& arguments) override {
    ColumnSum(dtype_, arguments.inputs[0], rows_, columns_, arguments.outputs[0]);
    return Status::Ok();
  }

 private:
  const DType dtype_;
  const int64_t columns_;
  const int64_t rows_;
};

}  // namespace

void RegisterBroadcastKernels(KernelRegistry& registry) {
  registry.Register("add_broadcast", MakeKernel<AddBroadcast>);
  registry.Register("sum_leading", MakeKernel<SumLeading>);
}

}  // namespace zg
