#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/kernels/cpu/elementwise_blocks.h"
#include "framework/kernels/cpu/kernel_util.h"
#include "framework/kernels/cpu/sharing.h"
#include "framework/ops/elementwise_program.h"

namespace zg {
namespace {

constexpr int64_t kBlock = kElementwiseBlock;

// Runs the whole program block by block. Intermediate results are in slots of the workspace, which
// are reused after a result's last use. The output may be one of the inputs. Every result is of the
// node's dtype, so fusing changes no bit.
class FusedElementwise : public Kernel {
 public:
  FusedElementwise(const ElementwiseProgram& program, const TensorType& type, int threads)
      : element_bytes_(SizeOf(type.dtype)),
        num_elements_(type.shape.num_elements()),
        threads_(threads) {
    AssignSlots(program, type.dtype);
  }

  int64_t workspace_bytes() const override {
    return WorkspaceBytes(NumSharing(threads_, num_elements_, kElementUnit, cost()),
                          num_slots_ * slot_bytes());
  }

  Status Run(const KernelArguments& arguments) override {
    ForRanges(arguments.threads, num_elements_, kElementUnit, cost(),
              [&](int64_t begin, int64_t end, int thread) {
                void* const slots =
                    WorkspaceOf(thread, arguments.workspace, num_slots_ * slot_bytes());
                for (; begin < end; begin += kBlock) {
                  const int64_t count = std::min(kBlock, end - begin);
                  for (const Step& step : steps_) RunStep(step, arguments, slots, begin, count);
                }
              });
    return Status::Ok();
  }

 private:
  struct Source {
    bool is_input = false;
    int index = 0;  // of the node's input or of the slot
  };
  struct Step {
    ElementwiseFunction run = nullptr;
    int num_inputs = 1;
    Source sources[2];
    float scalar = 0.0f;
    int slot = -1;  // -1: the node's output
  };

  int64_t slot_bytes() const { return kBlock * element_bytes_; }

  int64_t cost() const { return static_cast<int64_t>(steps_.size()); }

  void RunStep(const Step& step, const KernelArguments& arguments, void* scratch, int64_t begin,
               int64_t count) const {
    char* const slots = static_cast<char*>(scratch);
    const int64_t begin_bytes = begin * element_bytes_;
    const void* inputs[2];
    for (int i = 0; i < step.num_inputs; ++i) {
      const Source& source = step.sources[i];
      inputs[i] = source.is_input ? arguments.input<char>(source.index) + begin_bytes
                                  : slots + source.index * slot_bytes();
    }
    char* const result =
        step.slot < 0 ? arguments.output<char>(0) + begin_bytes : slots + step.slot * slot_bytes();
    step.run(inputs, step.scalar, count, result);
  }

  void AssignSlots(const ElementwiseProgram& program, DType dtype) {
    std::vector<size_t> last_use(program.size(), program.size());
    for (size_t i = 0; i < program.size(); ++i) {
      for (const ElementwiseOperand& operand : program[i].operands) {
        if (!operand.is_input) last_use[operand.index] = i;
      }
    }
    std::vector<int> slot_of(program.size(), -1);
    std::vector<int> free_slots;
    for (size_t i = 0; i < program.size(); ++i) {
      Step step;
      step.run = FunctionOf(program[i].op->code, dtype);
      step.num_inputs = program[i].op->num_inputs;
      step.scalar = static_cast<float>(program[i].attribute);
      for (size_t j = 0; j < program[i].operands.size(); ++j) {
        const ElementwiseOperand& operand = program[i].operands[j];
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

  const int64_t element_bytes_;
  const int64_t num_elements_;
  const int threads_;
  int num_slots_ = 0;
  std::vector<Step> steps_;
};

StatusOr<std::unique_ptr<Kernel>> MakeFusedElementwise(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCpuTypes(spec));
  ZG_ASSIGN_OR_RETURN(const ElementwiseProgram program,
                      ParseElementwiseProgram(spec.call.attributes.String("program"),
                                              static_cast<int>(spec.call.inputs.size())));
  return std::unique_ptr<Kernel>(
      std::make_unique<FusedElementwise>(program, spec.outputs[0], spec.threads));
}

}  // namespace

void RegisterFusedElementwiseKernels(KernelRegistry& registry) {
  registry.Register("fused_elementwise", MakeFusedElementwise);
}

}  // namespace zg
