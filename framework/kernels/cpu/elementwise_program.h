// The program of a fused_elementwise node: a chain of elementwise ops, one statement per op.
//
//   "t0=add(i0,i1);t1=scale(t0,factor=0.5);t2=gelu(t1)"
//
// iN is input N of the node, tN the result of statement N; statement N assigns tN, and the last one
// is the node's output. Ops are those of elementwise_blocks.h. No spaces.
#pragma once

#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/kernels/cpu/elementwise_blocks.h"

namespace zg {

struct ElementwiseStatement {
  struct Operand {
    bool is_input = false;  // of the node; otherwise an earlier statement's result
    int index = 0;
  };
  const ElementwiseOp* op = nullptr;
  std::vector<Operand> operands;
  float scalar = 0.0f;
};

// Error: what does not parse, an unknown op, a wrong number of operands, a name that is not
// defined (yet), a result that nobody uses.
StatusOr<std::vector<ElementwiseStatement>> ParseElementwiseProgram(std::string_view program,
                                                                    int num_inputs);

}  // namespace zg
