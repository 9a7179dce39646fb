// Checks that the ops share whose windows move over images.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/op_def.h"
#include "framework/ops/op_rules.h"

namespace zg {

// Error unless input `index`, of the name names[index], has 4 dims, the last two not empty.
Status CheckImages(const ir::OpCall& call, const InputNames& names, size_t index);

// Error unless the attribute has a number for height and one for width, of at least `lowest`.
Status CheckTwoNumbers(const ir::OpCall& call, const char* name, int64_t lowest);

// Error unless the attribute `padding` is at most half of `kernel`: else a window may lie outside.
Status CheckPaddingOfWindow(const ir::OpCall& call, const InputNames& names);

}  // namespace zg
