// The program of an elementwise_update or normed_update node: an optimizer's rule, as statements in
// the form of elementwise_program.h. It is text in the node, which this reads:
//
//   "t0=scale(i2,factor=0.9);t1=add(t0,i1);t2=multiply(t1,i3);t3=subtract(i0,t2)"  results=[3,1]
//
// Inputs of the program: the parameter, its gradient and the states, then three scalars: lr,
// weight_decay and the number of the update, and of normed_update the norms, each over a tensor, of
// the statements `norms`, and the tensor's number of elements. A statement whose operands are all
// scalars is one, too, and is computed once, in f64; the others are computed in f32 for every
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
  std::vector<int> norms;        // none of them depends on one
  int num_tensors = 0;           // parameter, gradient and states
  std::vector<bool> is_scalar;   // by statement
  std::vector<bool> needs_norm;  // likewise: computed from one, or from the number of elements
  std::vector<int> slots;        // of the elementwise results, by statement; a slot serves again
  int num_slots = 0;

  int num_scalar_inputs() const {
    return norms.empty() ? int{kNumUpdateScalars} : size_scalar() + 1;
  }
  // The scalar that is the number of elements.
  int size_scalar() const { return kNumUpdateScalars + static_cast<int>(norms.size()); }
  bool IsScalar(const ElementwiseOperand& operand) const {
    return operand.is_input ? operand.index >= num_tensors : is_scalar[operand.index];
  }
  // Scalars are numbered: the inputs, then the statements, of which those of elements are unused.
  int ScalarIndex(const ElementwiseOperand& operand) const {
    return operand.is_input ? operand.index - num_tensors : num_scalar_inputs() + operand.index;
  }
};

// Of a call's attributes `program`, `results` and, if it has them, `norms`. Errors: what does not
// parse; a result that is a scalar or of which there are too many; a scalar statement with an op
// that is not for scalars; a norm of a scalar, or of what depends on a norm.
StatusOr<UpdateProgram> ParseUpdateProgram(const ir::OpCall& call);

// Whether statements of scalars may use it: arithmetic, and the functions of a learning rate.
bool IsScalarOp(ElementwiseCode code);

}  // namespace zg
