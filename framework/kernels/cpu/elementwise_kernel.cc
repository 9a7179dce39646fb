#include "framework/kernels/cpu/elementwise_kernel.h"

#include <algorithm>
#include <string>

#include "framework/base/check.h"
#include "framework/kernels/cpu/convert.h"

namespace zg {

ElementwiseKernel::ElementwiseKernel(std::string_view op, const TensorType& type)
    : op_(FindElementwiseOp(op)), dtype_(type.dtype), num_elements_(type.shape.num_elements()) {
  ZG_CHECK(op_ != nullptr, "{} has no block function", op);
}

ElementwiseKernel::ElementwiseKernel(const KernelSpec& spec)
    : ElementwiseKernel(spec.call.op->name, spec.outputs[0]) {
  if (!op_->scalar_attribute.empty()) {
    scalar_ = static_cast<float>(spec.call.attributes.Float(op_->scalar_attribute));
  }
}

// In 16 bits: the inputs and the result of a block in f32.
int64_t ElementwiseKernel::workspace_bytes() const {
  if (dtype_ == DType::kF32) return 0;
  return (op_->num_inputs + 1) * kElementwiseBlock * static_cast<int64_t>(sizeof(float));
}

Status ElementwiseKernel::RunHalf(const KernelArguments& arguments) {
  float* const result = static_cast<float*>(arguments.workspace);
  const int64_t element_bytes = SizeOf(dtype_);
  for (int64_t begin = 0; begin < num_elements_; begin += kElementwiseBlock) {
    const int64_t count = std::min(kElementwiseBlock, num_elements_ - begin);
    const float* inputs[2];
    for (int i = 0; i < op_->num_inputs; ++i) {
      float* const widened = result + (i + 1) * kElementwiseBlock;
      ConvertFloats(dtype_, arguments.input<char>(i) + begin * element_bytes, DType::kF32, widened,
                    count);
      inputs[i] = widened;
    }
    op_->run(inputs, scalar_, count, result);
    ConvertFloats(DType::kF32, result, dtype_, arguments.output<char>(0) + begin * element_bytes,
                  count);
  }
  return Status::Ok();
}

Status ElementwiseKernel::Run(const KernelArguments& arguments) {
  if (dtype_ != DType::kF32) return RunHalf(arguments);
  const float* inputs[2];
  for (int i = 0; i < op_->num_inputs; ++i) inputs[i] = arguments.input<float>(i);
  op_->run(inputs, scalar_, num_elements_, arguments.output<float>(0));
  return Status::Ok();
}

}  // namespace zg
