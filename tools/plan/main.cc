// Predicts what a job will hold, send and compute, without running it or allocating its weights.
//   bazel run -c opt //tools:plan -- --preset gpt2 --ranks 4 --zero 2
//   bazel run -c opt //tools:plan -- --preset gpt2-xl --ranks 64 --fit 16G --ranks-per-host 8
//   bazel run -c opt //tools:plan -- --params 7.5e9 --ranks 64 --zero 2

#include "framework/io/atomic_file.h"
#include "framework/job/console.h"
#include "framework/ops/register_all_ops.h"
#include "framework/plan/html_report.h"
#include "framework/plan/json_report.h"
#include "framework/plan/text_report.h"
#include "framework/plan/write_plan.h"
#include "tools/command/tool.h"
#include "tools/plan/fit.h"
#include "tools/plan/paper_table.h"
#include "tools/plan/planned_model.h"

namespace zg::plan {
namespace {

Status AnswerFromPaper(const PlanOptions& options) {
  ZG_ASSIGN_OR_RETURN(const std::string table, PaperTable(options));
  print_out(table);
  if (options.json.empty()) return Status::Ok();
  ZG_ASSIGN_OR_RETURN(const std::string json, PaperJson(options));
  return WriteFileAtomically(options.json, json);
}

// The fastest setting that fits, and the others.
StatusOr<PlanReport> SearchAndReport(const PlanOptions& options) {
  ZG_ASSIGN_OR_RETURN(const FitFront front, FindFront(options, options.fit_bytes));
  print_out(FrontText(front, options.fit_bytes));
  PlanReport report;
  report.plan = front.points[0].plan;
  report.fit_bytes = options.fit_bytes;
  report.fit_choices = ChoicesAsFlags(front.points[0].options);
  for (const FitPoint& point : front.points) {
    report.fit_front.push_back(
        {point.plan.peak_bytes, point.plan.time.step_ms(), CommandOf(point.options)});
  }
  return report;
}

Status Answer(const PlanOptions& options, const FlagParser& flags) {
  if (flags.is_given("params")) return AnswerFromPaper(options);
  ZG_ASSIGN_OR_RETURN(PlanReport report, options.fit.empty()
                                             ? PlanModel(options, options.compare_stages)
                                             : SearchAndReport(options));
  report.config = flags.resolved();
  print_out(report.explanation.empty() ? TextReport(report) : report.explanation);
  return WritePlan(report, options.json, options.html);
}

int Main(int argc, char** argv) {
  RegisterAllOps();
  PlanOptions options;
  FlagParser flags("Says what a training job will hold, send and compute, without running it.");
  AddPlanFlags(&flags, &options);
  const StatusOr<bool> wants_help = flags.parse(argc, argv);
  if (!wants_help.ok()) return command::Fail("plan", wants_help.status());
  if (*wants_help) {
    print_out(flags.help("plan"));
    return 0;
  }
  Status status = ResolvePlanOptions(flags, &options);
  if (status.ok()) status = Answer(options, flags);
  return status.ok() ? 0 : command::Fail("plan", status);
}

}  // namespace
}  // namespace zg::plan

int main(int argc, char** argv) { return zg::plan::Main(argc, argv); }
