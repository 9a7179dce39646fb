#include <cstdint>

#include "framework/kernels/cpu/column_sum.h"
#include "framework/kernels/cpu/elementwise_blocks.h"
#include "framework/kernels/cpu/families.h"
#include "framework/kernels/cpu/kernel_util.h"

namespace zg {
namespace {

// y[l, r] = x[l, r] + bias[r].
class AddBroadcast : public Kernel {
 public:
  explicit AddBroadcast(const KernelSpec& spec)
      : columns_(spec.call.inputs[1].shape.num_elements()),
        rows_(columns_ == 0 ? 0 : spec.outputs[0].shape.num_elements() / columns_) {}

  Status Run(const KernelArguments& arguments) override {
    const float* const x = arguments.input<float>(0);
    const float* const bias = arguments.input<float>(1);
    float* const y = arguments.output<float>(0);
    for (int64_t row = 0; row < rows_; ++row) {
      const float* const inputs[] = {x + row * columns_, bias};
      add_->run(inputs, 0.0f, columns_, y + row * columns_);
    }
    return Status::Ok();
  }

 private:
  const ElementwiseOp* const add_ = FindElementwiseOp("add");
  const int64_t columns_;
  const int64_t rows_;
};

// y[r] = sum over l of x[l, r].
class SumLeading : public Kernel {
 public:
  explicit SumLeading(const KernelSpec& spec)
      : columns_(spec.outputs[0].shape.num_elements()),
        rows_(columns_ == 0 ? 0 : spec.call.inputs[0].shape.num_elements() / columns_) {}

  Status Run(const KernelArguments& arguments) override {
    ColumnSum(arguments.input<float>(0), rows_, columns_, arguments.output<float>(0));
    return Status::Ok();
  }

 private:
  const int64_t columns_;
  const int64_t rows_;
};

}  // namespace

void RegisterBroadcastKernels(KernelRegistry& registry) {
  registry.Register("add_broadcast", MakeKernel<AddBroadcast>);
  registry.Register("sum_leading", MakeKernel<SumLeading>);
}

}  // namespace zg
