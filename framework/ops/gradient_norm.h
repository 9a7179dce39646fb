// The norm of all gradients together, for clipping: exact sums of squares per bucket, and from them
// what the update nodes are told.
#pragma once

namespace zg {

class OpRegistry;

void RegisterGradientNormOps(OpRegistry& registry);

}  // namespace zg
