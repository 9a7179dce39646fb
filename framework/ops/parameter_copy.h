// Updates that also give their new parameter in 16 bits: with mixed precision the model reads that
// copy, and the parameter is still in registers when it is made.
#pragma once

#include <optional>

#include "framework/ir/op_def.h"

namespace zg {

// The update op with an optional copy: with the attribute `copy_dtype` of 16 bits, a node has one
// more output, after the others: output 0 in that type, as a cast gives it, with the same
// placement. fuse-copies makes such nodes.
ir::OpDef WithCopy(ir::OpDef op);

bool CanCopy(const ir::OpDef& op);

// The type of the copy, which is the last output; none: there is no copy.
std::optional<DType> CopyOf(const ir::Attributes& attributes);

}  // namespace zg
