#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/elementwise_program.h"
#include "framework/kernels/cpu/families.h"
#include "framework/kernels/cpu/kernel_util.h"

namespace zg {
namespace {

constexpr int64_t kBlock = kElementwiseBlock;

// Runs the whole program on one block after the other. Intermediate results live in slots of the
// workspace, which are used again after a result's last use. The output may be one of the inputs.
// In 16 bits every result is rounded, so that fusing changes no bit.
class FusedElementwise : public Kernel {
 public:
  FusedElementwise(std::vector<ElementwiseStatement> program, const TensorType& type)
      : dtype_(type.dtype), num_elements_(type.shape.num_elements()) {
    AssignSlots(std::move(program));
    if (is_half()) num_slots_ += kWidenedSlots;
  }

  int64_t workspace_bytes() const override {
    return num_slots_ * kBlock * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    for (int64_t begin = 0; begin < num_elements_; begin += kBlock) {
      const int64_t count = std::min(kBlock, num_elements_ - begin);
      for (const Step& step : steps_) RunStep(step, arguments, begin, count);
    }
    return Status::Ok();
  }

 private:
  // In 16 bits the last slots hold the inputs of a statement and the last result in f32.
  static constexpr int kWidenedSlots = 3;
  struct Source {
    bool is_input = false;
    int index = 0;  // of the node's input or of the slot
  };
  struct Step {
    const ElementwiseOp* op = nullptr;
    Source sources[2];
    float scalar = 0.0f;
    int slot = -1;  // -1: the node's output
  };

  bool is_half() const { return dtype_ != DType::kF32; }

  void RunStep(const Step& step, const KernelArguments& arguments, int64_t begin, int64_t count) {
    float* const slots = static_cast<float*>(arguments.workspace);
    float* const widened = slots + (num_slots_ - kWidenedSlots) * kBlock;
    const int64_t begin_bytes = begin * SizeOf(dtype_);
    const float* inputs[2];
    for (int i = 0; i < step.op->num_inputs; ++i) {
      const Source& source = step.sources[i];
      if (!source.is_input) {
        inputs[i] = slots + source.index * kBlock;
      } else if (!is_half()) {
        inputs[i] = arguments.input<float>(source.index) + begin;
      } else {
        float* const block = widened + i * kBlock;
        ConvertFloats(dtype_, arguments.input<char>(source.index) + begin_bytes, DType::kF32, block,
                      count);
        inputs[i] = block;
      }
    }
    const bool is_last = step.slot < 0;
    float* const result = !is_last    ? slots + step.slot * kBlock
                          : is_half() ? widened + 2 * kBlock
                                      : arguments.output<float>(0) + begin;
    step.op->run(inputs, step.scalar, count, result);
    if (!is_half()) return;
    if (is_last) {
      ConvertFloats(DType::kF32, result, dtype_, arguments.output<char>(0) + begin_bytes, count);
    } else {
      RoundFloats(dtype_, result, count);
    }
  }

  void AssignSlots(std::vector<ElementwiseStatement> program) {
    std::vector<size_t> last_use(program.size(), program.size());
    for (size_t i = 0; i < program.size(); ++i) {
      for (const auto& operand : program[i].operands) {
        if (!operand.is_input) last_use[operand.index] = i;
      }
    }
    std::vector<int> slot_of(program.size(), -1);
    std::vector<int> free_slots;
    for (size_t i = 0; i < program.size(); ++i) {
      Step step;
      step.op = program[i].op;
      step.scalar = program[i].scalar;
      for (size_t j = 0; j < program[i].operands.size(); ++j) {
        const auto& operand = program[i].operands[j];
        step.sources[j] = {operand.is_input,
                           operand.is_input ? operand.index : slot_of[operand.index]};
      }
      for (size_t t = 0; t < i; ++t) {
        if (last_use[t] == i) free_slots.push_back(slot_of[t]);
      }
      if (i + 1 < program.size()) {
        if (free_slots.empty()) free_slots.push_back(num_slots_++);
        step.slot = slot_of[i] = free_slots.back();
        free_slots.pop_back();
      }
      steps_.push_back(step);
    }
  }

  const DType dtype_;
  const int64_t num_elements_;
  int num_slots_ = 0;
  std::vector<Step> steps_;
};

StatusOr<std::unique_ptr<Kernel>> MakeFusedElementwise(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  ZG_ASSIGN_OR_RETURN(std::vector<ElementwiseStatement> program,
                      ParseElementwiseProgram(spec.call.attributes.String("program"),
                                              static_cast<int>(spec.call.inputs.size())));
  return std::unique_ptr<Kernel>(
      std::make_unique<FusedElementwise>(std::move(program), spec.outputs[0]));
}

}  // namespace

void RegisterFusedElementwiseKernels(KernelRegistry& registry) {
  registry.Register("fused_elementwise", MakeFusedElementwise);
}

}  // namespace zg
