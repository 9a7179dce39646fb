#include <cstdint>

#include "framework/kernels/cpu/column_sum.h"
#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/elementwise_blocks.h"
#include "framework/kernels/cpu/families.h"
#include "framework/kernels/cpu/kernel_util.h"

namespace zg {
namespace {

// y[l, r] = x[l, r] + bias[r]. In 16 bits the workspace holds the bias and a row in f32.
class AddBroadcast : public Kernel {
 public:
  explicit AddBroadcast(const KernelSpec& spec)
      : dtype_(spec.outputs[0].dtype),
        columns_(spec.call.inputs[1].shape.num_elements()),
        rows_(columns_ == 0 ? 0 : spec.outputs[0].shape.num_elements() / columns_) {}

  int64_t workspace_bytes() const override {
    if (dtype_ == DType::kF32) return 0;
    return 2 * columns_ * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    if (dtype_ != DType::kF32) return RunHalf(arguments);
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
  Status RunHalf(const KernelArguments& arguments) {
    float* const bias = static_cast<float*>(arguments.workspace);
    float* const values = bias + columns_;
    const int64_t row_bytes = columns_ * SizeOf(dtype_);
    ConvertFloats(dtype_, arguments.inputs[1], DType::kF32, bias, columns_);
    for (int64_t row = 0; row < rows_; ++row) {
      ConvertFloats(dtype_, arguments.input<char>(0) + row * row_bytes, DType::kF32, values,
                    columns_);
      const float* const inputs[] = {values, bias};
      add_->run(inputs, 0.0f, columns_, values);
      ConvertFloats(DType::kF32, values, dtype_, arguments.output<char>(0) + row * row_bytes,
                    columns_);
    }
    return Status::Ok();
  }

  const ElementwiseOp* const add_ = FindElementwiseOp("add");
  const DType dtype_;
  const int64_t columns_;
  const int64_t rows_;
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
