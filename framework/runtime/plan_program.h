// PlanProgram: makes the kernels of a compiled graph and plans the arena with the workspaces that
// they need. Nothing is allocated: the executor does that, and tools/plan only shows the plan.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "framework/base/status.h"
#include "framework/ir/graph.h"
#include "framework/kernels/kernel.h"
#include "framework/passes/plan_memory.h"
#include "framework/passes/program.h"

namespace zg {

// Boxing nodes have no kernel here, because theirs need the plan (boxing/boxing_kernel.h).
using ProgramKernels = std::unordered_map<const ir::Node*, std::unique_ptr<Kernel>>;

struct ProgramPlan {
  ProgramKernels kernels;
  MemoryPlan memory;
};

// Makes the kernel of a node that has one.
StatusOr<std::unique_ptr<Kernel>> MakeKernelOf(const ir::Graph& graph, const ir::Node& node,
                                               const KernelRegistry& kernels);

// The graph must be compiled (no `place` left). `planned` is its plan for the same target
// (Program::memory); null: it is planned anew. Errors: the device has no kernel for a node; the plan
// is for another target.
StatusOr<ProgramPlan> PlanProgram(const ir::Graph& graph, const KernelRegistry& kernels,
                                  int64_t communicator_workspace_bytes,
                                  const MemoryPlan* planned = nullptr);

// The target for a device with these kernels, which must outlive it, and for a transport that needs
// this many bytes of the arena.
Target TargetOf(const KernelRegistry& kernels, int64_t communicator_workspace_bytes = 0);

}  // namespace zg
