#include "framework/kernels/cpu/widened_kernel.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/kernels/cpu/convert.h"

namespace zg {
namespace {

bool IsHalf(DType dtype) { return dtype == DType::kBF16 || dtype == DType::kF16; }

int64_t AlignedBytes(int64_t bytes) { return (bytes + 63) / 64 * 64; }

void WidenTypes(std::vector<TensorType>* types) {
  for (TensorType& type : *types) {
    if (IsHalf(type.dtype)) type.dtype = DType::kF32;
  }
}

// An operand in the arena and its copy in the workspace; those that are f32 already have none.
struct Operand {
  DType dtype = DType::kF32;
  int64_t num_elements = 0;
  int64_t copy_offset = -1;
};

class WidenedKernel : public Kernel {
 public:
  WidenedKernel(const KernelSpec& spec, std::unique_ptr<Kernel> kernel)
      : kernel_(std::move(kernel)), workspace_bytes_(AlignedBytes(kernel_->workspace_bytes())) {
    for (const TensorType& type : spec.call.inputs) inputs_.push_back(MakeOperand(type));
    for (const TensorType& type : spec.outputs) outputs_.push_back(MakeOperand(type));
    input_pointers_.resize(inputs_.size());
    output_pointers_.resize(outputs_.size());
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  Status Run(const KernelArguments& arguments) override {
    char* const workspace = static_cast<char*>(arguments.workspace);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Operand& input = inputs_[i];
      input_pointers_[i] = arguments.inputs[i];
      if (input.copy_offset < 0) continue;
      input_pointers_[i] = workspace + input.copy_offset;
      ConvertFloats(input.dtype, arguments.inputs[i], DType::kF32, workspace + input.copy_offset,
                    input.num_elements);
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Operand& output = outputs_[i];
      output_pointers_[i] =
          output.copy_offset < 0 ? arguments.outputs[i] : workspace + output.copy_offset;
    }
    ZG_RETURN_IF_ERROR(kernel_->Run(
        {input_pointers_.data(), output_pointers_.data(), arguments.workspace, arguments.step}));
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Operand& output = outputs_[i];
      if (output.copy_offset < 0) continue;
      ConvertFloats(DType::kF32, workspace + output.copy_offset, output.dtype, arguments.outputs[i],
                    output.num_elements);
    }
    return Status::Ok();
  }

 private:
  Operand MakeOperand(const TensorType& type) {
    Operand operand = {type.dtype, type.shape.num_elements(), -1};
    if (!IsHalf(type.dtype)) return operand;
    operand.copy_offset = workspace_bytes_;
    workspace_bytes_ += AlignedBytes(operand.num_elements * static_cast<int64_t>(sizeof(float)));
    return operand;
  }

  std::unique_ptr<Kernel> kernel_;  // its workspace comes first
  int64_t workspace_bytes_;
  std::vector<Operand> inputs_;
  std::vector<Operand> outputs_;
  std::vector<const void*> input_pointers_;
  std::vector<void*> output_pointers_;
};

}  // namespace

bool HasHalfOperand(const KernelSpec& spec) {
  const auto is_half = [](const TensorType& type) { return IsHalf(type.dtype); };
  return std::any_of(spec.call.inputs.begin(), spec.call.inputs.end(), is_half) ||
         std::any_of(spec.outputs.begin(), spec.outputs.end(), is_half);
}

StatusOr<std::unique_ptr<Kernel>> MakeWidenedKernel(const KernelSpec& spec,
                                                    const MakeKernelFunction& make) {
  KernelSpec widened = spec;
  WidenTypes(&widened.call.inputs);
  WidenTypes(&widened.outputs);
  ZG_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, make(widened));
  return std::unique_ptr<Kernel>(std::make_unique<WidenedKernel>(spec, std::move(kernel)));
}

}  // namespace zg
