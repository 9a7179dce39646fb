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
    : run_(FunctionOf(code, type.dtype)),
      num_elements_(type.shape.num_elements()),
      element_bytes_(SizeOf(type.dtype)) {}

ElementwiseKernel::ElementwiseKernel(const KernelSpec& spec)
    : ElementwiseKernel(RowOfSpec(spec).code, spec.outputs[0]) {
  const ElementwiseRow& row = RowOfSpec(spec);
  if (!row.attribute.empty()) {
    scalar_ = static_cast<float>(spec.call.attributes.Float(row.attribute));
  }
  const Shape& first = spec.call.inputs[0].shape;
  const Shape& last = spec.call.inputs.back().shape;
  if (first == last) return;
  const Shape* const operands[] = {&first, &last};
  const int64_t bytes[] = {element_bytes_, element_bytes_};
  broadcast_.emplace(spec.outputs[0].shape, operands, bytes);
}

int64_t ElementwiseKernel::workspace_bytes() const {
  return broadcast_.has_value() ? broadcast_->workspace_bytes() : 0;
}

Status ElementwiseKernel::Run(const KernelArguments& arguments) {
  char* const y = arguments.output<char>(0);
  if (broadcast_.has_value()) {
    broadcast_->ForEach(arguments.inputs, arguments.workspace,
                        [&](const void* const* operands, int64_t begin, int64_t count) {
                          run_(operands, scalar_, count, y + begin * element_bytes_);
                        });
  } else {
    run_(arguments.inputs, scalar_, num_elements_, y);
  }
  return Status::Ok();
}

}  // namespace zg
