#include "framework/kernels/cpu/elementwise_kernel.h"

#include <string>

#include "framework/base/check.h"

namespace zg {

ElementwiseKernel::ElementwiseKernel(std::string_view op, const TensorType& type)
    : op_(FindElementwiseOp(op)), num_elements_(type.shape.num_elements()) {
  ZG_CHECK(op_ != nullptr, "{} has no block function", op);
  run_ = op_->function(type.dtype);
}

ElementwiseKernel::ElementwiseKernel(const KernelSpec& spec)
    : ElementwiseKernel(spec.call.op->name, spec.outputs[0]) {
  if (!op_->scalar_attribute.empty()) {
    scalar_ = static_cast<float>(spec.call.attributes.Float(op_->scalar_attribute));
  }
}

Status ElementwiseKernel::Run(const KernelArguments& arguments) {
  run_(arguments.inputs, scalar_, num_elements_, arguments.outputs[0]);
  return Status::Ok();
}

}  // namespace zg
