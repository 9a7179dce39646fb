// Ops of the family shape (shape.cc) that rearrange elements along one dim, their attribute `dim`;
// the other dims may be split. slice and pad are each other's gradients, and so are concat and
// slices.
#pragma once

#include "framework/ir/op_def.h"

namespace zg {

ir::OpDef SliceOp();
ir::OpDef PadOp();
ir::OpDef ConcatOp();
ir::OpDef FlipOp();

}  // namespace zg
