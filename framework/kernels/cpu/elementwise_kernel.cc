#include "framework/kernels/cpu/elementwise_kernel.h"

#include "framework/base/check.h"
#include "framework/kernels/cpu/sharing.h"

namespace zg {
namespace {

const ElementwiseRow& RowOfSpec(const KernelSpec& spec) {
  const ElementwiseRow* const row = FindElementwiseRow(spec.call.op->name);
  ZG_CHECK(row != nullptr, "{} is not elementwise", spec.call.op->name);
  return *row;
}

}  // namespace

ElementwiseKernel::ElementwiseKernel(ElementwiseCode code, const TensorType& type, int threads)
    : run_(FunctionOf(code, type.dtype)),
      num_inputs_(RowOf(code).num_inputs),
      num_elements_(type.shape.num_elements()),
      element_bytes_(SizeOf(type.dtype)),
      threads_(threads) {}

ElementwiseKernel::ElementwiseKernel(const KernelSpec& spec)
    : ElementwiseKernel(RowOfSpec(spec).code, spec.outputs[0], spec.threads) {
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
  return broadcast_.has_value() ? broadcast_->workspace_bytes(threads_) : 0;
}

Status ElementwiseKernel::Run(const KernelArguments& arguments) {
  char* const y = arguments.output<char>(0);
  if (broadcast_.has_value()) {
    broadcast_->ForEach(arguments, [&](const void* const* operands, int64_t begin, int64_t count) {
      run_(operands, scalar_, count, y + begin * element_bytes_);
    });
    return Status::Ok();
  }
  ForRanges(arguments.threads, num_elements_, kElementUnit, 1,
            [&](int64_t begin, int64_t end, int) {
              const int64_t offset = begin * element_bytes_;
              const void* operands[2];
              for (int i = 0; i < num_inputs_; ++i) {
                operands[i] = arguments.input<char>(i) + offset;
              }
              run_(operands, scalar_, end - begin, y + offset);
            });
  return Status::Ok();
}

}  // namespace zg
