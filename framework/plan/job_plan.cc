#include "framework/plan/job_plan.h"

#include <algorithm>
#include <utility>

#include "framework/passes/step_results.h"
#include "framework/plan/step_estimate.h"
#include "framework/runtime/host_traffic.h"
#include "framework/state/checkpoint_slices.h"

namespace zg::plan {
namespace {

// Activations that are alive when backward begins.
int64_t KeptBytes(const JobPlan& plan) {
  const auto is_backward = [](const ScheduledNode& node) { return node.section == "backward"; };
  const auto found = std::find_if(plan.schedule.begin(), plan.schedule.end(), is_backward);
  const auto begin = static_cast<int>(found - plan.schedule.begin());
  int64_t bytes = 0;
  for (const PlannedBuffer& buffer : plan.buffers) {
    const bool is_kept = buffer.timeline == 0 && buffer.first < begin && buffer.last >= begin;
    if (is_kept && buffer.category == MemoryCategory::kActivations) bytes += buffer.bytes;
  }
  return bytes;
}

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

VariantPlan PlanVariant(const Program& program, const Machine& machine) {
  return {program.variant, program.memory.OwnBytes(), program.flops,
          EstimateStep(program, machine).time.step_ms()};
}

}  // namespace

JobPlan PlanJob(const Program& program, const Machine& machine, const std::string& description) {
  JobPlan plan;
  plan.model = program.graph.name();
  plan.description = description.empty() ? plan.model : description;
  plan.num_parameters = program.num_parameters;
  plan.ranks = program.graph.mesh().num_ranks();
  plan.options = program.options;
  const auto inputs = program.settings.find("inputs");
  if (inputs != program.settings.end()) plan.inputs = inputs->second;
  plan.machine = machine;
  plan.category_bytes = program.memory.category_bytes;
  plan.peak_bytes = program.memory.arena_bytes;
  plan.lower_bound_bytes = program.memory.lower_bound_bytes;
  plan.saving_bytes = MostCheckpointBytes(program.graph);
  plan.result_bytes = StepResultBytes(program.graph);
  for (const Program& other : program.other_variants) {
    plan.result_bytes += StepResultBytes(other.graph);
    plan.variants.push_back(PlanVariant(other, machine));
  }
  if (!program.variant.is_only()) plan.variants.push_back(PlanVariant(program, machine));
  plan.compile_ms = program.compile_ms;
  FillSchedule(program.graph, program.memory, &plan);
  plan.kept_bytes = KeptBytes(plan);
  plan.traffic = PredictTrafficOnHosts(program.graph, HostsOf(program.graph.mesh(), machine));
  for (const auto& [op, traffic] : plan.traffic) plan.sent_bytes += traffic.bytes;
  plan.flops = program.flops;
  plan.races = program.races;
  StepEstimate step = EstimateStep(program, machine);
  plan.kernels = step.kernels;
  plan.time = step.time;
  plan.traffic_of_axes = std::move(step.traffic_of_axes);
  plan.priced = std::move(step.priced);
  plan.priced_transfers = step.priced_transfers;
  plan.transfers = ListTransfers(program.graph, step.queues, program.options.overlap_bytes);
  plan.computing = std::move(step.queues.computing);
  plan.sending = std::move(step.queues.sending);
  plan.replicated = ListReplicated(program.graph, program.options.zero);
  plan.owned = SumOwned(program.graph, program.options.zero);
  return plan;
}

}  // namespace zg::plan
