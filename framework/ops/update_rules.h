// The common part of the optimizers' update ops. Inputs: the parameter p, its gradient g, the
// states, and optionally the control; outputs: the new p and states, each in the memory of the old
// one.
#pragma once

#include "framework/ir/op_def.h"

namespace zg {

// The traits, attributes and rules of an update, without its shape rule and its states.
//   lr     multiplied by the schedule's factor
//   group  of parameters: those of different groups share no bucket
// An update with `counts` also has after_updates: the number of updates before its parameters
// joined, so that bias corrections count from there.
ir::OpDef UpdateOp(std::string name, std::string doc, bool counts);

// p and the states are f32 and have the same shape as g, which may be in 16 bits; the control is
// f32[2]. Returns the types of the outputs.
StatusOr<std::vector<TensorType>> UpdateTypes(const ir::OpCall& call, int num_states);

}  // namespace zg
