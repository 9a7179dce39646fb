#include "zero/zerograph/plan_graph.h"

#include <utility>
#include <vector>

#include "framework/plan/explain_placement.h"
#include "zero/zerograph/choose_overlap.h"

namespace zg {
namespace {

constexpr int kNumStages = 4;

}  // namespace

StatusOr<plan::PlanReport> plan_graph(const Graph& graph, const Mesh& mesh,
                                      const CompileOptions& options, const Target& target,
                                      const PlanGraphOptions& plan_options) {
  plan::PlanReport report;
  const auto plan = [&](const CompileOptions& asked) -> StatusOr<plan::JobPlan> {
    ZG_ASSIGN_OR_RETURN(const Program program, zero::Compile(graph, mesh, asked, target));
    if (!plan_options.explain.empty()) {
      ZG_ASSIGN_OR_RETURN(report.explanation,
                          plan::ExplainPlacement(program, plan_options.explain));
    }
    return plan::PlanJob(program, plan_options.machine, plan_options.description);
  };
  CompileOptions resolved = options;
  ZG_ASSIGN_OR_RETURN(report.overlap, ChooseOverlap(graph, mesh, target, plan_options.machine,
                                                    plan_options.sends_messages, &resolved));
  ZG_ASSIGN_OR_RETURN(report.plan, plan(resolved));
  const bool compares = plan_options.compare_stages && plan_options.explain.empty();
  if (!compares || mesh.num_ranks() == 1) return report;
  std::vector<plan::JobPlan> stages;
  const bool is_mixture = !report.plan.options.zero.stage_rules.empty();
  for (int stage = 0; stage < kNumStages; ++stage) {
    if (!is_mixture && stage == report.plan.options.zero.stage) {
      stages.push_back(report.plan);
      continue;
    }
    CompileOptions other = report.plan.options;
    other.zero.set_stage(stage);
    other.dump_directory.clear();
    other.max_memory_bytes = CompileOptions::kUnlimitedBytes;
    ZG_ASSIGN_OR_RETURN(plan::JobPlan planned, plan(other));
    stages.push_back(std::move(planned));
  }
  if (is_mixture) stages.push_back(report.plan);
  report.stages = plan::CompareStages(std::move(stages));
  return report;
}

}  // namespace zg
