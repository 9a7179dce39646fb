// The norm of all gradients together, for clipping: exact sums of squares per bucket, and from them
// what the update nodes are told. guarded_update_control leaves out updates that are not finite;
// its state starts as zeros.
#pragma once

namespace zg {

namespace ir {
class OpRegistry;
}

void RegisterGradientNormOps(ir::OpRegistry& registry);

}  // namespace zg
