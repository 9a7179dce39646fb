// The program of an elementwise_update or normed_update node: an optimizer's rule, as statements in
// the form of elementwise_program.h. The node stores it as text, which this reads:
//
//   "t0=scale(i2,factor=0.9);t1=add(t0,i1);t2=multiply(t1,i3);t3=subtract(i0,t2)"  results=[3,1]
//
// Inputs of the program: the parameter, its gradient and the states, then three scalars: lr,
// weight_decay and the number of the update. normed_update adds the norms, each over a tensor, of
// the statements `norms`, and the tensor's number of elements. A statement whose operands are all
// scalars is a scalar, too, and is computed once, in f64; the others are computed in f32 for every
// element. results are the statements that give the new parameter and the new states.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/op_def.h"
#include "framework/ops/elementwise_program.h"

namespace zg {

inline constexpr int kMaxUpdateStates = 4;

// In the order of the program's inputs, after the tensors.
enum UpdateScalar { kUpdateLr, kUpdateWeightDecay, kUpdateNumber, kNumUpdateScalars };

struct UpdateProgram {
  ElementwiseProgram statements;
  std::vector<int> results;
  std::vector<int> norms;        // none of these depends on a norm
  int num_tensors = 0;           // parameter, gradient and states
  std::vector<bool> is_scalar;   // by statement
  std::vector<bool> needs_norm;  // by statement: computed from a norm, or from the number of
                                 // elements
  std::vector<int> slots;        // of the elementwise results, by statement; slots are reused
  int num_slots = 0;

  int num_scalar_inputs() const {
    return norms.empty() ? int{kNumUpdateScalars} : size_scalar() + 1;
  }
  // The scalar that is the number of elements.
  int size_scalar() const { return kNumUpdateScalars + static_cast<int>(norms.size()); }
  bool IsScalar(const ElementwiseOperand& operand) const {
    return operand.is_input ? operand.index >= num_tensors : is_scalar[operand.index];
  }
  // Scalars are numbered: the inputs, then the statements, of which the elementwise ones are
  // unused.
  int ScalarIndex(const ElementwiseOperand& operand) const {
    return operand.is_input ? operand.index - num_tensors : num_scalar_inputs() + operand.index;
  }
};

// Parses a call's attributes `program`, `results` and, if it has them, `norms`. Errors: text that
// does not parse; a result that is a scalar, or too many results; a scalar statement with an op
// that is not for scalars; a norm of a scalar, or of a value that depends on a norm.
StatusOr<UpdateProgram> ParseUpdateProgram(const ir::OpCall& call);

// Whether statements on scalars may use it: arithmetic, and the functions of a learning rate.
bool IsScalarOp(ElementwiseCode code);

}  // namespace zg
