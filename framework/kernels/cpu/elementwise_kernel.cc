#include "framework/kernels/cpu/elementwise_kernel.h"

#include "framework/base/check.h"

namespace zg {
namespace {

const ElementwiseRow& RowOfSpec(const KernelSpec& spec) {
  const ElementwiseRow* const row = FindElementwiseRow(spec.call.op->name);
  ZG_CHECK(row != nullptr, "{} is not elementwise", spec.call.op->name);
  return *row;
}

}  // namespace

ElementwiseKernel::ElementwiseKernel(ElementwiseCode code, const TensorType& type)
    : run_(FunctionOf(code, type.dtype)), num_elements_(type.shape.num_elements()) {}

ElementwiseKernel::ElementwiseKernel(const KernelSpec& spec)
    : ElementwiseKernel(RowOfSpec(spec).code, spec.outputs[0]) {
  const ElementwiseRow& row = RowOfSpec(spec);
  if (!row.attribute.empty()) {
    scalar_ = static_cast<float>(spec.call.attributes.Float(row.attribute));
  }
}

Status ElementwiseKernel::Run(const KernelArguments& arguments) {
  run_(arguments.inputs, scalar_, num_elements_, arguments.outputs[0]);
  return Status::Ok();
}

}  // namespace zg
