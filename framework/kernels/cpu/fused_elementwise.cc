#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "framework/kernels/cpu/elementwise_program.h"
#include "framework/kernels/cpu/families.h"
#include "framework/kernels/cpu/kernel_util.h"

namespace zg {
namespace {

constexpr int64_t kBlock = 2048;  // floats: a handful of blocks fit the first-level cache

// Runs the whole program on one block after the other. Intermediate results live in slots of the
// workspace, which are used again after a result's last use. The output may be one of the inputs.
class FusedElementwise : public Kernel {
 public:
  FusedElementwise(std::vector<ElementwiseStatement> program, int64_t num_elements)
      : num_elements_(num_elements) {
    AssignSlots(std::move(program));
  }

  int64_t workspace_bytes() const override {
    return num_slots_ * kBlock * static_cast<int64_t>(sizeof(float));
  }

  Status Run(const KernelArguments& arguments) override {
    float* const slots = static_cast<float*>(arguments.workspace);
    float* const out = arguments.output<float>(0);
    for (int64_t begin = 0; begin < num_elements_; begin += kBlock) {
      const int64_t count = std::min(kBlock, num_elements_ - begin);
      for (const Step& step : steps_) {
        const float* inputs[2];
        for (int i = 0; i < step.op->num_inputs; ++i) {
          const Source& source = step.sources[i];
          inputs[i] = source.is_input ? arguments.input<float>(source.index) + begin
                                      : slots + source.index * kBlock;
        }
        float* const result = step.slot < 0 ? out + begin : slots + step.slot * kBlock;
        step.op->run(inputs, step.scalar, count, result);
      }
    }
    return Status::Ok();
  }

 private:
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

  const int64_t num_elements_;
  int num_slots_ = 0;
  std::vector<Step> steps_;
};

StatusOr<std::unique_ptr<Kernel>> MakeFusedElementwise(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  if (HasHalfOperand(spec)) return MakeWidenedKernel(spec, MakeFusedElementwise);
  ZG_ASSIGN_OR_RETURN(std::vector<ElementwiseStatement> program,
                      ParseElementwiseProgram(spec.call.attributes.String("program"),
                                              static_cast<int>(spec.call.inputs.size())));
  const int64_t num_elements = spec.outputs[0].shape.num_elements();
  return std::unique_ptr<Kernel>(
      std::make_unique<FusedElementwise>(std::move(program), num_elements));
}

}  // namespace

void RegisterFusedElementwiseKernels(KernelRegistry& registry) {
  registry.Register("fused_elementwise", MakeFusedElementwise);
}

}  // namespace zg
