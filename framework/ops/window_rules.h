// Common checks of the ops whose windows move over images.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/op_def.h"
#include "framework/ops/op_rules.h"

namespace zg {

// Error unless input `index`, named names[index], has 4 dims, the last two not empty.
Status CheckImages(const ir::OpCall& call, const InputNames& names, size_t index);

// Error unless the attribute has a number for height and one for width, of at least `lowest`.
Status CheckTwoNumbers(const ir::OpCall& call, const char* name, int64_t lowest);

// Error unless the attribute `padding` is at most half of `kernel`: otherwise a window may be
// entirely outside of the image.
Status CheckPaddingOfWindow(const ir::OpCall& call, const InputNames& names);

// How many windows of `kernel` elements lie along the height (i = 0) or width (1) of images of this
// size, by the attributes `padding`, `dilation` and `stride`. Error when none does.
StatusOr<int64_t> CountWindows(const ir::OpCall& call, const InputNames& names, int i, int64_t size,
                               int64_t kernel);

}  // namespace zg
