// Ops that add one more tensor to their result in the same kernel, for residual connections.
#pragma once

#include "framework/ir/op_def.h"

namespace zg {

// The op with an optional addend: with the attribute `adds` a node has one more input, after the
// others, of the type and the placement of output 0, and adds it to that output. The CPU's kernels
// round to 16 bits before they add, as two nodes do; those of GPUs need not. fuse-additions makes
// such nodes.
ir::OpDef WithAddend(ir::OpDef op);

// The index of the call's input that is the addend; -1: it has none.
int AddendOf(const ir::OpCall& call);

// The call without its addend, if it has one.
ir::OpCall WithoutAddend(ir::OpCall call);

}  // namespace zg
