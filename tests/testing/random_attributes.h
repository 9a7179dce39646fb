// Attributes of ops at random, for random models (random_graph.h).
#pragma once

#include "framework/ir/op_def.h"
#include "tests/testing/random_choice.h"

namespace zg::testing {

// Those that the op requires, and some of the others. Each random op gets streams of its own, counted
// by `num_streams`. Whether they fit the operands, the op's shape rule must say.
ir::Attributes RandomAttributes(const ir::OpDef& op, Random* random, int* num_streams);

}  // namespace zg::testing
