#include "tools/plan/planned_model.h"

#include <utility>

#include "framework/comm/message_chunks.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/runtime/plan_program.h"
#include "tools/plan/model_graph.h"
#include "zero/zerograph/plan_graph.h"

namespace zg::plan {

StatusOr<PlanReport> PlanModel(const PlanOptions& options, bool compare_stages) {
  Graph graph(options.model);
  ZG_RETURN_IF_ERROR(TraceModel(options, &graph));
  const bool sends_messages = options.comm == "messages";
  const int64_t communicator_bytes = sends_messages ? MessageWorkspaceBytes(options.ranks) : 0;
  const CompileOptions& compile = graph.config();
  PlanGraphOptions plan_options;
  plan_options.description = DescribeModel(options);
  plan_options.machine = options.machine;
  plan_options.sends_messages = sends_messages;
  plan_options.compare_stages = compare_stages;
  plan_options.explain = options.explain;
  return plan_graph(graph, compile.MeshOf(options.ranks), compile,
                    TargetOf(CpuKernels(options.threads), communicator_bytes), plan_options);
}

StatusOr<JobPlan> PlanModel(const PlanOptions& options) {
  ZG_ASSIGN_OR_RETURN(PlanReport report, PlanModel(options, /*compare_stages=*/false));
  return std::move(report.plan);
}

}  // namespace zg::plan
