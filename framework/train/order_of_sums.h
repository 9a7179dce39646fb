// What the order of a program's sums depends on beside its micro-batches, which checkpoints record with
// the arithmetic of the device: a run that goes on with another order has other bits.
#pragma once

#include <string>

#include "framework/passes/program.h"

namespace zg {

// ", tensor in 2 parts by the rules 1f2e3d4c" for an axis along which ranks share micro-batches, and
// ", gradients of 3 ranks" for those that are summed once per step. Empty: the order is that of the
// micro-batches, on any number of ranks.
std::string OrderOfSums(const Program& program);

}  // namespace zg
