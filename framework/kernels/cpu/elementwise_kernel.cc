#include "framework/kernels/cpu/elementwise_kernel.h"

#include <string>

#include "framework/base/check.h"

namespace zg {

ElementwiseKernel::ElementwiseKernel(const KernelSpec& spec)
    : op_(FindElementwiseOp(spec.call.op->name)),
      num_elements_(spec.outputs[0].shape.num_elements()) {
  ZG_CHECK(op_ != nullptr, "{} has no block function", spec.call.op->name);
  if (!op_->scalar_attribute.empty()) {
    scalar_ = static_cast<float>(spec.call.attributes.Float(op_->scalar_attribute));
  }
}

Status ElementwiseKernel::Run(const KernelArguments& arguments) {
  const float* inputs[2];
  for (int i = 0; i < op_->num_inputs; ++i) inputs[i] = arguments.input<float>(i);
  op_->run(inputs, scalar_, num_elements_, arguments.output<float>(0));
  return Status::Ok();
}

}  // namespace zg
