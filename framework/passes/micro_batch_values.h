// Which values of a traced section differ from micro-batch to micro-batch.
#pragma once

#include <unordered_set>

#include "framework/ir/graph.h"

namespace zg {

// The values that depend on an input with a split placement, or on random numbers.
std::unordered_set<const ir::Value*> MicroBatchValues(const ir::Section& section);

}  // namespace zg
