// The program of an update (framework/ops/update_program.h), evaluated by threads on packs of
// elements.
#pragma once

#include <string>

#include "framework/kernels/cuda/packs.cuh"
#include "framework/kernels/math/elementwise_math.h"
#include "framework/kernels/math/update_scalars.h"
#include "framework/ops/update_program.h"

namespace zg::cuda {

// Limits: the intermediate results that a thread holds, and the size of a kernel's parameters.
inline constexpr int kMaxUpdateSlots = 12;
inline constexpr int kMaxUpdateStatements = 48;
inline constexpr int kMaxUpdateTensors = 2 + kMaxUpdateStates;
inline constexpr int kMaxUpdateNorms = 4;
inline constexpr int kMaxUpdateScalars =
    kNumUpdateScalars + kMaxUpdateNorms + 1 + kMaxUpdateStatements;

// An operand is a slot, the tensor ~operand, or from kFirstUpdateScalar on a scalar.
inline constexpr int kFirstUpdateScalar = kMaxUpdateSlots;

struct UpdateStatement {
  ElementwiseCode code;
  bool needs_norm;
  double attribute;
  int16_t operands[2];
  int16_t slot;  // of the result; -1: the result is a scalar
};

struct DeviceUpdateProgram {
  int num_statements = 0;
  int num_tensors = 0;
  int num_scalar_inputs = 0;
  int num_norms = 0;
  UpdateStatement statements[kMaxUpdateStatements];
  int16_t results[kMaxUpdateStates + 1];  // their slots
  int16_t norms[kMaxUpdateNorms];         // likewise
};

// Error: a program that is too long.
inline StatusOr<DeviceUpdateProgram> CompileUpdate(const UpdateProgram& source,
                                                   const std::string& op) {
  if (static_cast<int>(source.statements.size()) > kMaxUpdateStatements ||
      source.num_slots > kMaxUpdateSlots ||
      static_cast<int>(source.norms.size()) > kMaxUpdateNorms) {
    return InvalidArgument(
        "{}: {} statements with {} intermediate results at once and {} norms, the CUDA kernel "
        "takes {} with {} and {}",
        op, source.statements.size(), source.num_slots, source.norms.size(), kMaxUpdateStatements,
        kMaxUpdateSlots, kMaxUpdateNorms);
  }
  DeviceUpdateProgram program;
  program.num_tensors = source.num_tensors;
  program.num_scalar_inputs = source.num_scalar_inputs();
  for (size_t i = 0; i < source.statements.size(); ++i) {
    const ElementwiseStatement& from = source.statements[i];
    UpdateStatement& statement = program.statements[program.num_statements++];
    statement.code = from.op->code;
    statement.needs_norm = source.needs_norm[i];
    statement.attribute = from.attribute;
    statement.slot = static_cast<int16_t>(source.slots[i]);
    for (size_t j = 0; j < 2; ++j) {
      const ElementwiseOperand& operand = from.operands[j < from.operands.size() ? j : 0];
      const int index = source.IsScalar(operand) ? kFirstUpdateScalar + source.ScalarIndex(operand)
                        : operand.is_input       ? ~operand.index
                                                 : source.slots[operand.index];
      statement.operands[j] = static_cast<int16_t>(index);
    }
  }
  for (size_t i = 0; i < source.results.size(); ++i) {
    program.results[i] = static_cast<int16_t>(source.slots[source.results[i]]);
  }
  for (const int norm : source.norms) {
    program.norms[program.num_norms++] = static_cast<int16_t>(source.slots[norm]);
  }
  return program;
}

// scalars: in the order of UpdateProgram::ScalarIndex; the program's inputs are already set.
__device__ inline void EvaluateUpdateScalars(const DeviceUpdateProgram& program, double* scalars) {
  double* const results = scalars + program.num_scalar_inputs;
  for (int s = 0; s < program.num_statements; ++s) {
    const UpdateStatement& statement = program.statements[s];
    results[s] = 0.0;
    if (statement.slot >= 0) continue;
    results[s] =
        EvaluateScalar(statement.code, scalars[statement.operands[0] - kFirstUpdateScalar],
                       scalars[statement.operands[1] - kFirstUpdateScalar], statement.attribute);
  }
}

// The parameter, its gradient and the states.
template <typename T>
struct UpdateTensors {
  const float* tensors[kMaxUpdateTensors];  // all except the gradient
  const T* g;

  UpdateTensors(const KernelArguments& arguments, int num_tensors)
      : tensors{}, g(arguments.input<T>(1)) {
    for (int i = 0; i < num_tensors; ++i) {
      if (i != 1) tensors[i] = arguments.input<float>(i);
    }
  }

  bool AreAllAligned(int num_tensors) const {
    bool is_aligned = AreAligned(16, g);
    for (int i = 0; i < num_tensors; ++i) {
      if (i != 1) is_aligned = is_aligned && AreAligned(16, tensors[i]);
    }
    return is_aligned;
  }

  template <int kCount>
  __device__ Floats<kCount> Load(int operand, const Floats<kCount>* slots, int64_t begin,
                                 float factor, const float* scalars) const {
    if (operand >= kFirstUpdateScalar) {
      Floats<kCount> floats;
#pragma unroll
      for (int i = 0; i < kCount; ++i) floats[i] = scalars[operand - kFirstUpdateScalar];
      return floats;
    }
    if (operand >= 0) return slots[operand];
    if (~operand != 1) return LoadFloats<kCount>(tensors[~operand] + begin);
    Floats<kCount> gradient = LoadFloats<kCount>(g + begin);
#pragma unroll
    for (int i = 0; i < kCount; ++i) gradient[i] = factor * gradient[i];
    return gradient;
  }

  // Evaluates all statements, or those that need no norm, for kCount elements. The gradient is
  // multiplied by `factor`.
  template <int kCount>
  __device__ void Evaluate(const DeviceUpdateProgram& program, int64_t begin, float factor,
                           const float* scalars, bool without_norms, Floats<kCount>* slots) const {
    for (int s = 0; s < program.num_statements; ++s) {
      const UpdateStatement& statement = program.statements[s];
      if (statement.slot < 0 || (without_norms && statement.needs_norm)) continue;
      const Floats<kCount> a = Load(statement.operands[0], slots, begin, factor, scalars);
      const Floats<kCount> b = Load(statement.operands[1], slots, begin, factor, scalars);
      const float attribute = static_cast<float>(statement.attribute);
      Floats<kCount> result;
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        result[i] = zg::Evaluate(statement.code, a[i], b[i], attribute);
      }
      slots[statement.slot] = result;
    }
  }
};

// The destinations of the new parameter and the new states.
struct UpdateOutputs {
  float* outputs[kMaxUpdateStates + 1];

  UpdateOutputs(const KernelArguments& arguments, int num_outputs) : outputs{} {
    for (int i = 0; i < num_outputs; ++i) outputs[i] = arguments.output<float>(i);
  }

  bool AreAllAligned(int num_outputs) const {
    bool is_aligned = true;
    for (int i = 0; i < num_outputs; ++i) is_aligned = is_aligned && AreAligned(16, outputs[i]);
    return is_aligned;
  }

  // Returns whether the new parameters are finite.
  template <int kCount>
  __device__ bool Store(const DeviceUpdateProgram& program, const Floats<kCount>* slots,
                        int64_t begin) const {
    for (int r = 0; r < program.num_tensors - 1; ++r) {
      StoreFloats(slots[program.results[r]], outputs[r] + begin);
    }
    const Floats<kCount> p = slots[program.results[0]];
    bool is_finite = true;
#pragma unroll
    for (int i = 0; i < kCount; ++i) is_finite = is_finite && std::isfinite(p[i]);
    return is_finite;
  }

  template <int kCount, typename T>
  __device__ void Keep(const DeviceUpdateProgram& program, const UpdateTensors<T>& from,
                       int64_t begin) const {
    for (int r = 0; r < program.num_tensors - 1; ++r) {
      const float* const old_values = from.tensors[r == 0 ? 0 : r + 1];
      StoreFloats(LoadFloats<kCount>(old_values + begin), outputs[r] + begin);
    }
  }
};

struct UpdateHyperparameters {
  double lr;
  double weight_decay;
  double after_updates;

  explicit UpdateHyperparameters(const ir::Attributes& attributes)
      : lr(attributes.Float("lr")),
        weight_decay(attributes.Float("weight_decay")),
        after_updates(static_cast<double>(attributes.Int("after_updates"))) {}

  // `control`: {factor, number of the update}; null: 1 and the step's number.
  __device__ void SetScalars(const StepContext& step, const float* control, double* scalars) const {
    const double number = control == nullptr ? static_cast<double>(step.step) : control[1];
    scalars[kUpdateLr] = lr * step.lr_factor;
    scalars[kUpdateWeightDecay] = weight_decay;
    scalars[kUpdateNumber] = number - after_updates;
  }
};

}  // namespace zg::cuda
