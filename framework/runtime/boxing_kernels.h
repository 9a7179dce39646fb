// Kernels of the boxing ops: collectives on arena operands, and the local slices and copies that
// need the rank.
#pragma once

#include <memory>

#include "framework/comm/communicator.h"
#include "framework/ir/graph.h"
#include "framework/kernels/kernel.h"
#include "framework/passes/plan_memory.h"

namespace zg {

bool IsBoxing(const ir::Node& node);

// What a boxing node needs besides its operands: room to bring a dim other than the outermost to
// the front.
int64_t BoxingWorkspaceBytes(const ir::Graph& graph, const ir::Node& node);

// Must be called with the plan that the arena was allocated for. All ranks run boxing kernels in
// the same order.
std::unique_ptr<Kernel> MakeBoxingKernel(const ir::Graph& graph, const ir::Node& node,
                                         const MemoryPlan& plan, Communicator* communicator);

}  // namespace zg
