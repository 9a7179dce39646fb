// CheckNothingIsClobbered: walks a planned program like the executor and tracks the content of
// every word of the arena. It finds a value that is read after something else was written over it,
// whatever the plan says about lifetimes.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/graph.h"
#include "framework/passes/plan_memory.h"

namespace zg::testing {

// For small graphs: keeps account of every 4 bytes. Error: node, input, and the value found
// instead.
Status CheckNothingIsClobbered(const ir::Graph& graph, const MemoryPlan& plan, int rank);

}  // namespace zg::testing
