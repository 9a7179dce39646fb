// Which values of a traced section differ from micro-batch to micro-batch, and what may be done
// with scalars among them.
//
// Ranks work on different micro-batches at the same time, and a scalar made from one (a loss) is
// the mean over it. The compiler takes a step's loss as the mean of these means, which is right as
// long as only linear operations lie between them and the result: f(mean) on each rank is not f of
// the mean over all ranks.
#pragma once

#include <unordered_set>

#include "framework/ir/graph.h"

namespace zg {

// The values that depend on an input with a split placement. Error: an operation on a scalar among
// them other than a sum or difference of two, a multiple of one, or its output.
StatusOr<std::unordered_set<const ir::Value*>> MicroBatchValues(const ir::Section& section);

}  // namespace zg
