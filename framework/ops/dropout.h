// Dropout and its gradient. The mask is a function of (seed, step, micro-batch, stream, element
// index), so it is never stored: the gradient draws it again, and so does recomputation.
#pragma once

namespace zg {

namespace ir {
class OpRegistry;
}

void RegisterDropoutOps(ir::OpRegistry& registry);

}  // namespace zg
