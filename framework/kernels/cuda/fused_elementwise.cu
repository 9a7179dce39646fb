#include <memory>
#include <utility>
#include <vector>

#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/math/elementwise_math.h"
#include "framework/ops/elementwise_program.h"

namespace zg::cuda {
namespace {

// Limits: the intermediate results that a thread holds, and the size of a kernel's parameters.
constexpr int kMaxSlots = 12;
constexpr int kMaxStatements = 128;
constexpr int kMaxInputs = 64;

// An operand is a slot, or input ~operand of the node.
struct Statement {
  ElementwiseCode code;
  float scalar;
  int16_t operands[2];
  int16_t slot;  // of the result
};

struct Program {
  int num_statements = 0;
  Statement statements[kMaxStatements];
};

// Every thread runs the whole program on its elements. In 16 bits every result is rounded, so that
// fusing changes no bit. The output may be one of the inputs.
template <typename T>
struct FusedBody {
  Program program;
  const T* inputs[kMaxInputs];
  T* y;

  template <int kCount>
  __device__ Floats<kCount> Load(int operand, const Floats<kCount>* slots, int64_t begin) const {
    return operand >= 0 ? slots[operand] : LoadFloats<kCount>(inputs[~operand] + begin);
  }

  template <int kCount>
  __device__ void Run(int64_t begin) const {
    Floats<kCount> slots[kMaxSlots];
    Floats<kCount> result;
    for (int s = 0; s < program.num_statements; ++s) {
      const Statement& statement = program.statements[s];
      const Floats<kCount> a = Load(statement.operands[0], slots, begin);
      const Floats<kCount> b = Load(statement.operands[1], slots, begin);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const float value = Evaluate(statement.code, a[i], b[i], statement.scalar);
        result[i] = Widen(Round<T>(value));
      }
      slots[statement.slot] = result;
    }
    StoreFloats(result, y + begin);
  }
};

class FusedElementwise : public Kernel {
 public:
  FusedElementwise(Program program, const KernelSpec& spec)
      : program_(program),
        num_inputs_(static_cast<int>(spec.call.inputs.size())),
        type_(spec.outputs[0]) {}

  Status Run(const KernelArguments& arguments) override {
    return WithFloatType(type_.dtype, [&](auto zero) {
      using T = decltype(zero);
      FusedBody<T> body = {program_, {}, arguments.output<T>(0)};
      bool is_aligned = AreAligned(16, body.y);
      for (int i = 0; i < num_inputs_; ++i) {
        body.inputs[i] = arguments.input<T>(i);
        is_aligned = is_aligned && AreAligned(16, body.inputs[i]);
      }
      return RunPacks<kPackOf<T>>(body, is_aligned, type_.shape.num_elements(), arguments.stream);
    });
  }

 private:
  const Program program_;
  const int num_inputs_;
  const TensorType type_;
};

// The index of a slot that no later statement reads, or a new one.
int TakeSlot(std::vector<int>* free_slots, int* num_slots) {
  if (free_slots->empty()) return (*num_slots)++;
  const int slot = free_slots->back();
  free_slots->pop_back();
  return slot;
}

StatusOr<Program> Compile(const ElementwiseProgram& source, int num_inputs) {
  if (static_cast<int>(source.size()) > kMaxStatements || num_inputs > kMaxInputs) {
    return InvalidArgument(
        "fused_elementwise: {} statements on {} inputs, the CUDA kernel takes {} on {}",
        source.size(), num_inputs, kMaxStatements, kMaxInputs);
  }
  std::vector<size_t> last_use(source.size(), source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    for (const ElementwiseOperand& operand : source[i].operands) {
      if (!operand.is_input) last_use[operand.index] = i;
    }
  }
  Program program;
  std::vector<int> free_slots;
  int num_slots = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    Statement& statement = program.statements[program.num_statements++];
    statement.code = source[i].op->code;
    statement.scalar = static_cast<float>(source[i].attribute);
    for (size_t j = 0; j < 2; ++j) {
      const ElementwiseOperand& operand = source[i].operands[j < source[i].operands.size() ? j : 0];
      statement.operands[j] = static_cast<int16_t>(
          operand.is_input ? ~operand.index : program.statements[operand.index].slot);
    }
    for (size_t t = 0; t < i; ++t) {
      if (last_use[t] == i) free_slots.push_back(program.statements[t].slot);
    }
    statement.slot = static_cast<int16_t>(TakeSlot(&free_slots, &num_slots));
  }
  if (num_slots > kMaxSlots) {
    return InvalidArgument(
        "fused_elementwise: {} intermediate results at once, the CUDA kernel keeps {}", num_slots,
        kMaxSlots);
  }
  return program;
}

StatusOr<std::unique_ptr<Kernel>> MakeFusedElementwise(const KernelSpec& spec) {
  ZG_RETURN_IF_ERROR(CheckCudaTypes(spec));
  const int num_inputs = static_cast<int>(spec.call.inputs.size());
  ZG_ASSIGN_OR_RETURN(const ElementwiseProgram source,
                      ParseElementwiseProgram(spec.call.attributes.String("program"), num_inputs));
  ZG_ASSIGN_OR_RETURN(const Program program, Compile(source, num_inputs));
  return std::unique_ptr<Kernel>(std::make_unique<FusedElementwise>(program, spec));
}

}  // namespace

void RegisterFusedElementwiseKernels(KernelRegistry& registry) {
  registry.Register("fused_elementwise", MakeFusedElementwise);
}

}  // namespace zg::cuda
