#include "tools/plan/job_plan.h"

#include <chrono>

#include "framework/comm/message_chunks.h"
#include "framework/kernels/cpu/cpu_kernels.h"
#include "framework/runtime/plan_program.h"
#include "framework/state/checkpoint_slices.h"
#include "tools/plan/model_graph.h"
#include "zero/trainer.h"

namespace zg::plan {
namespace {

void FillSchedule(const ir::Graph& graph, const MemoryPlan& memory, JobPlan* plan) {
  const MemoryTimeline timeline = TrainingTimeline(graph, memory);
  for (const MemoryMoment& moment : timeline.moments) {
    const ir::Node& node = *moment.node;
    const ir::Value* value = node.outputs.empty() ? node.inputs[0] : node.outputs[0];
    plan->schedule.push_back({std::string(ir::SectionKindName(node.section->kind)), node.op->name,
                              node.scope, value->name, moment.alive, moment.total_bytes()});
  }
  plan->peak = timeline.peak;
  for (const PlannedBuffer* buffer : AliveAt(memory, timeline.peak)) {
    plan->peak_alive.push_back(*buffer);
  }
  for (const PlannedBuffer& buffer : memory.buffers) {
    if (buffer.bytes > 0) plan->buffers.push_back(buffer);
  }
}

}  // namespace

StatusOr<JobPlan> PlanJob(const PlanOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Graph graph(options.model, options.ranks);
  ZG_RETURN_IF_ERROR(TraceModel(options, &graph));
  JobPlan plan;
  plan.options = options;
  plan.description = DescribeModel(options);
  plan.num_parameters = graph.num_parameters();
  ZG_RETURN_IF_ERROR(zero::CompileGraph(graph, /*dump_directory=*/"").status());
  const int64_t communicator_bytes =
      options.comm == "messages" ? MessageWorkspaceBytes(options.ranks) : 0;
  ZG_ASSIGN_OR_RETURN(const ProgramPlan program,
                      PlanProgram(graph.ir(), CpuKernels(), communicator_bytes));
  plan.category_bytes = program.memory.category_bytes;
  plan.peak_bytes = program.memory.arena_bytes;
  plan.lower_bound_bytes = program.memory.lower_bound_bytes;
  plan.saving_bytes = MostCheckpointBytes(graph.ir());
  plan.compile_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  FillSchedule(graph.ir(), program.memory, &plan);
  plan.traffic = PredictTraffic(graph.ir());
  for (const auto& [op, traffic] : plan.traffic) plan.sent_bytes += traffic.bytes;
  plan.flops = PredictFlops(graph.ir());
  plan.time = EstimateTime(plan.traffic, plan.flops, options);
  plan.replicated = ListReplicated(graph.ir(), options);
  return plan;
}

}  // namespace zg::plan
