#include "zero/zerograph/train.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "framework/comm/message_chunks.h"
#include "framework/job/console.h"
#include "framework/kernels/device_kernels.h"
#include "framework/plan/text_report.h"
#include "framework/plan/write_plan.h"
#include "framework/runtime/plan_program.h"
#include "framework/train/measured_gemms.h"
#include "zero/zerograph/choose_overlap.h"
#include "zero/zerograph/make_trainer.h"
#include "zero/zerograph/plan_graph.h"

namespace zg {
namespace {

// Null if the flags do not ask for them.
StatusOr<std::shared_ptr<MeasuredGemms>> MeasuredGemmsOf(const Job& job) {
  const JobOptions& flags = job.options();
  if (flags.gemm_choices.empty()) return std::shared_ptr<MeasuredGemms>();
  ZG_ASSIGN_OR_RETURN(const KernelRegistry* kernels,
                      DeviceKernels(job.communicator().device(), {flags.tf32, flags.threads}));
  return MeasuredGemms::Open(flags.gemm_choices, *kernels, job.communicator());
}

StatusOr<TrainerOptions> TrainerOptionsOf(const Job& job) {
  const JobOptions& flags = job.options();
  TrainerOptions options;
  ZG_ASSIGN_OR_RETURN(options.measured_gemms, MeasuredGemmsOf(job));
  options.seed = static_cast<uint64_t>(flags.seed);
  options.detect_anomaly = flags.detect_anomaly;
  options.profile = flags.profile;
  options.gradient_histograms_every = flags.metrics_histograms;
  if (!flags.trace.empty()) options.trace_steps = flags.trace_steps;
  options.record = flags.cuda_graph;
  options.tf32 = flags.tf32;
  options.threads = flags.threads;
  return options;
}

// The machine as far as the flags tell. Prices of as many ranks are of their hosts, too.
StatusOr<plan::Machine> MachineOf(const Job& job, const CompileOptions& compile_options) {
  const JobOptions& options = job.options();
  plan::Machine machine;
  if (options.prices.empty()) return machine;
  StatusOr<plan::PriceList> prices =
      plan::PriceList::Read(options.prices, {options.threads, compile_options.dtype});
  ZG_RETURN_IF_ERROR(prices.status().WithContext("--prices"));
  machine.prices = std::make_shared<plan::PriceList>(std::move(*prices));
  const std::vector<int>& hosts = machine.prices->ranks().hosts;
  if (static_cast<int>(hosts.size()) == job.num_planned_ranks()) {
    StatusOr<int> ranks_per_host = plan::RanksPerHost(hosts);
    ZG_RETURN_IF_ERROR(ranks_per_host.status().WithContext("--prices " + options.prices));
    machine.ranks_per_host = *ranks_per_host;
  }
  return machine;
}

// Decides about `overlap` by `--prices`.
Status ChooseOverlapByPrices(const Job& job, const Graph& graph, CompileOptions* compile_options) {
  const std::string& file = job.options().prices;
  if (file.empty()) return Status::Ok();
  if (compile_options->overlap_bytes != CompileOptions::kAuto) {
    return InvalidArgument("--prices: is without effect; give --plan or --overlap auto as well");
  }
  Communicator& communicator = job.communicator();
  if (!communicator.device().is_host()) {
    return InvalidArgument(
        "--prices: got {}, but the ranks compute on GPUs, whose times no profile "
        "has; leave it out, or give --plan",
        file);
  }
  ZG_ASSIGN_OR_RETURN(plan::Machine machine, MachineOf(job, *compile_options));
  ZG_ASSIGN_OR_RETURN(machine.ranks_per_host, plan::RanksPerHost(communicator.hosts()));
  const Mesh mesh = compile_options->MeshOf(communicator.size());
  if (!plan::HasTransferPrices(mesh, machine)) {
    return InvalidArgument(
        "--prices: {} has no times of transfers between {} ranks with {} on a host; give the "
        "--report of a run with --profile on the same hosts, or --plan",
        file, communicator.size(),
        machine.ranks_per_host == 0 ? communicator.size() : machine.ranks_per_host);
  }
  ZG_ASSIGN_OR_RETURN(const KernelRegistry* kernels,
                      DeviceKernels(communicator.device(), {false, job.options().threads}));
  ZG_ASSIGN_OR_RETURN(
      const plan::OverlapChoices choices,
      ChooseOverlap(graph, mesh, TargetOf(*kernels, communicator.arena().workspace_bytes()),
                    machine, /*sends_messages=*/false, compile_options));
  if (job.is_main()) {
    spdlog::info("overlap: {} by {}, {:.1f} ms per step; off: {:.1f} ms",
                 plan::OverlapLimitText(choices.best().max_bytes), file, choices.best().step_ms,
                 choices.tried[0].step_ms);
  }
  return Status::Ok();
}

Status PrintPlan(const Job& job, const Graph& graph, const CompileOptions& compile_options,
                 const std::string& description) {
  const JobOptions& options = job.options();
  Communicator& communicator = job.communicator();
  ZG_ASSIGN_OR_RETURN(const KernelRegistry* kernels,
                      DeviceKernels(communicator.device(), {options.tf32, options.threads}));
  ZG_ASSIGN_OR_RETURN(const std::shared_ptr<MeasuredGemms> gemms, MeasuredGemmsOf(job));
  if (gemms != nullptr) kernels = &gemms->kernels();
  PlanGraphOptions plan_options;
  plan_options.description = description;
  plan_options.explain = options.explain;
  ZG_ASSIGN_OR_RETURN(plan_options.machine, MachineOf(job, compile_options));
  const int ranks = job.num_planned_ranks();
  plan_options.sends_messages = plan_options.machine.ranks_per_host > 0;
  const Target target =
      TargetOf(*kernels, plan_options.sends_messages ? MessageWorkspaceBytes(ranks) : 0);
  ZG_ASSIGN_OR_RETURN(plan::PlanReport report, plan_graph(graph, compile_options.MeshOf(ranks),
                                                          compile_options, target, plan_options));
  if (gemms != nullptr) ZG_RETURN_IF_ERROR(gemms->CheckComplete());
  report.config = job.config();
  print_out(options.explain.empty() ? plan::TextReport(report) : report.explanation);
  return plan::WritePlan(report, options.json, options.html);
}

}  // namespace

std::unique_ptr<Trainer> make_trainer(Job& job, const Graph& graph, const TrainOptions& options) {
  job.check_on_all_ranks(graph.check());
  CompileOptions compile_options = job.apply_compile_flags(graph.config());
  if (options.stage.has_value()) compile_options.zero.set_stage(*options.stage);
  if (job.options().plan) {
    job.check_on_all_ranks(
        job.with_compile_flags(PrintPlan(job, graph, compile_options, options.description)));
    job.exit(0);
  }
  job.check_on_all_ranks(
      job.with_compile_flags(ChooseOverlapByPrices(job, graph, &compile_options)));
  const StatusOr<TrainerOptions> trainer_options = TrainerOptionsOf(job);
  job.check_on_all_ranks(job.with_compile_flags(trainer_options.status()));
  StatusOr<std::unique_ptr<Trainer>> made =
      make_trainer(graph, compile_options, job.communicator(), *trainer_options);
  job.check_on_all_ranks(job.with_compile_flags(made.status()));
  if (const std::string& init = job.options().init; !init.empty()) {
    job.check_on_all_ranks((*made)
                               ->load_parameters(init, options.init_may_lack, options.init_may_skip,
                                                 options.init_names)
                               .WithContext("--init"));
  }
  return std::move(made).value();
}

Training train(Job& job, const Graph& graph, const TrainOptions& options) {
  return Training(job, make_trainer(job, graph, options), options);
}

}  // namespace zg
