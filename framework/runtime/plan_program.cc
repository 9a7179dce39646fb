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

namespace {

StatusOr<ProgramKernels> MakeKernels(const ir::Graph& graph, const KernelRegistry& kernels) {
  ProgramKernels made;
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
      ZG_ASSIGN_OR_RETURN(made[node], MakeKernelOf(graph, *node, kernels));
    }
  }
  return made;
}

Status CheckTarget(const ir::Graph& graph, const MemoryPlan& plan,
                   const PlanMemoryOptions& options) {
  const auto check = [&](const std::string& who, int64_t needed, int64_t planned) -> Status {
    if (needed == planned) return Status::Ok();
    return FailedPrecondition(
        "graph {}: {} needs {} bytes of scratch memory, but {} are planned; compile the graph for "
        "the device and the transport that it runs on",
        graph.name(), who, needed, planned);
  };
  const auto bytes_of = [&](int buffer) { return buffer < 0 ? 0 : plan.buffers[buffer].bytes; };
  for (const auto& section : graph.sections()) {
    for (const ir::Node* node : section->nodes) {
      const auto found = plan.workspaces.find(node);
      const int64_t planned = found == plan.workspaces.end() ? 0 : bytes_of(found->second);
      ZG_RETURN_IF_ERROR(check(node->op->name, options.workspace_bytes(*node), planned));
    }
  }
  return check("the transport", options.communicator_workspace_bytes,
               bytes_of(plan.communicator_workspace));
}

}  // namespace

StatusOr<ProgramPlan> PlanProgram(const ir::Graph& graph, const KernelRegistry& kernels,
                                  int64_t communicator_workspace_bytes, const MemoryPlan* planned) {
  ProgramPlan plan;
  ZG_ASSIGN_OR_RETURN(plan.kernels, MakeKernels(graph, kernels));
  PlanMemoryOptions options;
  options.communicator_workspace_bytes = communicator_workspace_bytes;
  options.workspace_bytes = [&](const ir::Node& node) {
    if (IsBoxing(node)) return BoxingWorkspaceBytes(graph, node);
    const auto kernel = plan.kernels.find(&node);
    return kernel == plan.kernels.end() ? 0 : kernel->second->workspace_bytes();
  };
  if (planned != nullptr) ZG_RETURN_IF_ERROR(CheckTarget(graph, *planned, options));
  plan.memory = planned != nullptr ? *planned : PlanMemory(graph, options);
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
