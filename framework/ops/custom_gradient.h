// custom_gradient: a value whose gradient a model has written itself (nn/gradients.h).
#pragma once

#include "framework/ir/op_def.h"

namespace zg {

ir::OpDef CustomGradientOp();

}  // namespace zg
