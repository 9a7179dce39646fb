// The program of a fused_elementwise node: a chain of elementwise ops, one statement per op. The
// node stores it as text, which this reads and writes:
//
//   "t0=add(i0,i1);t1=scale(t0,factor=0.5);t2=gelu(t1)"
//
// iN is input N of the node, tN the result of statement N; statement N assigns tN, and the last one
// is the node's output. No spaces.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ops/elementwise_table.h"

namespace zg {

struct ElementwiseOperand {
  bool is_input = false;  // input of the node; otherwise an earlier statement's result
  int index = 0;
};

struct ElementwiseStatement {
  const ElementwiseRow* op = nullptr;
  std::vector<ElementwiseOperand> operands;  // as many as op->num_inputs
  double attribute = 0.0;                    // if the op has one
};

using ElementwiseProgram = std::vector<ElementwiseStatement>;

std::string ToString(const ElementwiseProgram& program);

// The inverse. Errors: text that does not parse, an op that is not elementwise, a wrong number of
// operands, a name that is not defined (yet), a result that nobody uses and that is not among
// `results`, a result that does not exist.
StatusOr<ElementwiseProgram> ParseElementwiseProgram(std::string_view text, int num_inputs,
                                                     const std::vector<int64_t>& results = {});

// As many as the ops have separately.
int64_t FlopsPerElement(const ElementwiseProgram& program);

}  // namespace zg
