// Attention of separate operands, with options: grouped heads, a window, a mask, a bias, and in
// dropout_attention dropout of the weights; each with its gradients.
#pragma once

#include <vector>

#include "framework/ir/op_def.h"

namespace zg {

std::vector<ir::OpDef> AttentionWithOptionsOps();

}  // namespace zg
