#include "framework/runtime/plan_program.h"

#include "framework/runtime/boxing_kernels.h"

namespace zg {
namespace {

// Nodes that only name memory, or that the executor runs itself.
bool HasKernel(const ir::Node& node) {
  const std::string& op = node.op->name;
  return op != "variable" && op != "bucket_view" && op != "input" && op != "output" &&
         op != "assign";
}

}  // namespace

StatusOr<ProgramPlan> PlanProgram(const ir::Graph& graph, const KernelRegistry& kernels,
                                  int64_t communicator_workspace_bytes) {
  ProgramPlan plan;
  for (const auto& section : graph.sections()) {
    for (const ir::Node* node : section->nodes) {
      if (!HasKernel(*node) || IsBoxing(*node)) continue;
      KernelSpec spec{node->LocalCall(graph.mesh()), {}};
      for (const ir::Value* output : node->outputs)
        spec.outputs.push_back(graph.LocalType(*output));
      StatusOr<std::unique_ptr<Kernel>> kernel = kernels.Make(spec);
      if (!kernel.ok())
        return kernel.status().WithContext(node->scope.empty() ? graph.name() : node->scope);
      plan.kernels[node] = std::move(kernel).value();
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

}  // namespace zg
