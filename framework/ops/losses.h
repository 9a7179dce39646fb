// Scalar losses and their gradients. `divisor` is the number of averaged elements of one
// micro-batch: cutting the batch over ranks gives terms whose sum is the sum of the micro-batches'
// means.
#pragma once

namespace zg {

namespace ir {
class OpRegistry;
}

void RegisterLossOps(ir::OpRegistry& registry);

}  // namespace zg
