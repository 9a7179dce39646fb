#include "framework/runtime/plan_program.h"

#include "framework/runtime/boxing/boxing_kernel.h"

namespace zg {

StatusOr<std::unique_ptr<Kernel>> MakeKernelOf(const ir::Graph& graph, const ir::Node& node,
                                               const KernelRegistry& kernels) {
  KernelSpec spec{node.LocalCall(graph.mesh()), {}};
  for (const ir::Value* output : node.outputs) spec.outputs.push_back(graph.LocalType(*output));
  StatusOr<std::unique_ptr<Kernel>> kernel = kernels.Make(spec);
  if (kernel.ok()) return kernel;
  return kernel.status().WithContext(node.scope.empty() ? graph.name() : node.scope);
}

StatusOr<ProgramPlan> PlanProgram(const ir::Graph& graph, const KernelRegistry& kernels,
                                  int64_t communicator_workspace_bytes) {
  ProgramPlan plan;
  for (const auto& section : graph.sections()) {
    for (const ir::Node* node : section->nodes) {
      if (node->op->traits.kind == ir::OpKind::kParameterGradient) {
        return InvalidArgument(
            "graph {}: the gradient of %{} is computed but no update reads it; run append-update",
            graph.name(), node->inputs[0]->name);
      }
      if (node->op->traits.kind == ir::OpKind::kNextValue) {
        return InvalidArgument(
            "graph {}: the next value of %{} is computed but nothing assigns it; run "
            "accumulate-results",
            graph.name(), node->inputs[0]->name);
      }
      if (!node->op->traits.has_kernel() || IsBoxing(*node)) continue;
      ZG_ASSIGN_OR_RETURN(plan.kernels[node], MakeKernelOf(graph, *node, kernels));
    }
  }
  PlanMemoryOptions options;
  options.communicator_workspace_bytes = communicator_workspace_bytes;
  options.workspace_bytes = [&](const ir::Node& node) {
    if (IsBoxing(node)) return BoxingWorkspaceBytes(graph, node);
    const auto kernel = plan.kernels.find(&node);
    return kernel == plan.kernels.end() ? 0 : kernel->second->workspace_bytes();
  };
  plan.memory = PlanMemory(graph, options);
  return plan;
}

Target TargetOf(const KernelRegistry& kernels, int64_t communicator_workspace_bytes) {
  return [&kernels, communicator_workspace_bytes](const ir::Graph& graph) -> StatusOr<MemoryPlan> {
    ZG_ASSIGN_OR_RETURN(ProgramPlan plan,
                        PlanProgram(graph, kernels, communicator_workspace_bytes));
    return std::move(plan.memory);
  };
}

}  // namespace zg
