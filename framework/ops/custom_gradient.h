// custom_gradient: a value with a gradient that the model defines (nn/gradients.h).
#pragma once

#include "framework/ir/op_def.h"

namespace zg {

ir::OpDef CustomGradientOp();

}  // namespace zg
