#include "zero/training_run.h"

#include <fmt/format.h>

#include <chrono>

#include "framework/job/console.h"
#include "framework/job/process_memory.h"
#include "framework/job/progress.h"
#include "framework/optim/schedule.h"
#include "zero/run_saver.h"

namespace zg::zero {
namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void AddDifference(const TrafficCounters& before, const TrafficCounters& after,
                   TrafficCounters* sum) {
  for (int i = 0; i < kNumCollectiveKinds; ++i) {
    (*sum)[i].count += after[i].count - before[i].count;
    (*sum)[i].bytes += after[i].bytes - before[i].bytes;
  }
}

TrafficCounters PerStep(TrafficCounters sum, int64_t steps) {
  for (Traffic& traffic : sum) {
    traffic.count /= steps;
    traffic.bytes /= steps;
  }
  return sum;
}

TrafficCounters Predicted(const ir::Graph& graph) {
  TrafficCounters counters = {};
  const std::map<std::string, PredictedTraffic> traffic = PredictTraffic(graph);
  for (int i = 0; i < kNumCollectiveKinds; ++i) {
    const auto found = traffic.find(std::string(CollectiveName(static_cast<CollectiveKind>(i))));
    if (found != traffic.end()) counters[i] = {found->second.count, found->second.bytes};
  }
  return counters;
}

StatusOr<std::vector<int64_t>> PeakOfEveryRank(const Executor& executor) {
  ZG_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                      executor.communicator().Exchange(
                          "peak memory", std::to_string(executor.meter().peak_bytes())));
  std::vector<int64_t> peaks;
  for (const std::string& text : texts) peaks.push_back(std::stoll(text));
  return peaks;
}

Status FillMemory(const TrainingRun& run, const Executor& executor, Report* report) {
  report->predicted_memory = {executor.plan().category_bytes, executor.plan().arena_bytes};
  report->measured_memory = {executor.meter().category_bytes(), executor.meter().peak_bytes()};
  ZG_ASSIGN_OR_RETURN(const ProcessMemory memory, ReadProcessMemory());
  // Peers' memory that is mapped here counts for the operating system, but it is theirs.
  report->rss_peak_bytes =
      memory.peak_resident_bytes - executor.communicator().arena().peer_resident_bytes();
  ZG_ASSIGN_OR_RETURN(const DeviceMemoryUse device, executor.device().MemoryUse());
  report->device_library_bytes = device.library_bytes;
  report->rss_before_graph_bytes = run.rss_before_graph_bytes;
  ZG_ASSIGN_OR_RETURN(report->per_rank_peak_bytes, PeakOfEveryRank(executor));
  return Status::Ok();
}

Status FillFinalState(Trainer& trainer, Report* report) {
  ZG_ASSIGN_OR_RETURN(const TensorDigest parameters, trainer.DigestParameters());
  ZG_ASSIGN_OR_RETURN(const TensorDigest state, trainer.DigestOptimizerState());
  report->final_state = {parameters.sum, parameters.sha256, state.sha256,
                         trainer.step() - trainer.num_updates()};
  return Status::Ok();
}

StatusOr<optim::Schedule> ScheduleOf(const JobOptions& options, int64_t steps) {
  optim::Schedule schedule;
  ZG_ASSIGN_OR_RETURN(schedule.decay, optim::ParseDecay(options.lr_schedule));
  schedule.warmup_steps = options.warmup_steps;
  schedule.total_steps = steps;
  schedule.final_factor = options.final_lr_factor;
  return schedule;
}

// What of the flags decides the bits of further steps; the trainer knows the rest.
void SetSettings(const JobOptions& options, const TrainingRun& run, Trainer& trainer) {
  for (const auto& [name, value] : run.settings) trainer.SetSetting(name, value);
  trainer.SetSetting("batch", fmt::to_string(options.batch));
  trainer.SetSetting("lr-schedule", options.lr_schedule);
  trainer.SetSetting("warmup-steps", fmt::to_string(options.warmup_steps));
  if (options.lr_schedule == "constant") return;  // more steps are no other schedule
  trainer.SetSetting("final-lr-factor", fmt::to_string(options.final_lr_factor));
  trainer.SetSetting("steps", fmt::to_string(run.steps));
}

Status ResumeIfAsked(const Job& job, const TrainingRun& run, Trainer& trainer) {
  const JobOptions& options = job.options();
  if (options.resume.empty()) return Status::Ok();
  ZG_RETURN_IF_ERROR(trainer.Resume(options.resume).WithContext("--resume"));
  if (trainer.step() > run.steps) {
    return InvalidArgument("--steps: got {}, but the checkpoint in {} is of step {} already",
                           run.steps, options.resume, trainer.step());
  }
  if (job.is_main()) PrintOut(fmt::format("resumed after step {}\n", trainer.step()));
  return Status::Ok();
}

}  // namespace

StatusOr<Report> RunTraining(Job& job, Trainer& trainer, const TrainingRun& run) {
  const Executor& executor = trainer.executor();
  const Communicator& communicator = executor.communicator();
  Report report;
  report.model = run.model;
  report.config = job.config();
  report.transport = communicator.transport();
  report.predicted_traffic = Predicted(executor.graph());
  report.speed.compile_ms = trainer.compile_ms();
  report.speed.flops_per_step = PredictFlops(executor.graph());

  ProgressOptions progress_options;
  progress_options.total_steps = run.steps;
  progress_options.tokens_per_step = run.tokens_per_step;
  progress_options.flops_per_step = report.speed.flops_per_step * job.size();
  progress_options.peak_memory_bytes = executor.plan().arena_bytes;
  progress_options.terminal_columns = TerminalColumns();
  Progress progress(progress_options);

  ZG_ASSIGN_OR_RETURN(const optim::Schedule schedule, ScheduleOf(job.options(), run.steps));
  SetSettings(job.options(), run, trainer);
  RunSaver saver(job, trainer, run.steps);
  ZG_RETURN_IF_ERROR(saver.Prepare());
  ZG_RETURN_IF_ERROR(ResumeIfAsked(job, run, trainer));
  report.saving_bytes = trainer.reserved_for_saving_bytes();
  const int64_t first_step = trainer.step() + 1;
  TrafficCounters measured = {};
  for (int64_t step = first_step; step <= run.steps; ++step) {
    const double factor = schedule.Factor(step);
    trainer.set_lr_factor(factor);
    const TrafficCounters before = communicator.traffic();
    const Clock::time_point start = Clock::now();
    ZG_ASSIGN_OR_RETURN(const float loss, trainer.Step([&](int64_t micro_batch) {
      return run.feed(trainer, step, micro_batch);
    }));
    StepRecord record;
    record.step = step;
    record.loss = loss;
    record.grad_norm = trainer.grad_norm();
    record.lr = run.lr * factor;
    record.ms = MillisecondsSince(start);
    AddDifference(before, communicator.traffic(), &measured);
    report.steps.push_back(record);
    if (job.is_main()) progress.Step(record);
    if (run.after_step != nullptr) ZG_RETURN_IF_ERROR(run.after_step(trainer, step));
    ZG_ASSIGN_OR_RETURN(report.was_ended_by_signal, saver.AfterStep(record.ms));
    if (report.was_ended_by_signal) break;
  }
  progress.Finish();
  const auto num_steps = static_cast<int64_t>(report.steps.size());
  if (num_steps > 0) report.measured_traffic = PerStep(measured, num_steps);
  report.speed.ms_per_step_median = MedianStepMs(report.steps);
  if (report.speed.ms_per_step_median > 0) {
    report.speed.tokens_per_s =
        1e3 * static_cast<double>(run.tokens_per_step) / report.speed.ms_per_step_median;
  }
  report.profile = executor.profile();
  ZG_RETURN_IF_ERROR(FillMemory(run, executor, &report));
  ZG_RETURN_IF_ERROR(FillFinalState(trainer, &report));
  return report;
}

TrainerOptions TrainerOptionsOf(const Job& job) {
  TrainerOptions options;
  options.seed = static_cast<uint64_t>(job.options().seed);
  options.init_path = job.options().init;
  options.dump_directory = job.options().print_ir;
  options.detect_anomaly = job.options().detect_anomaly;
  options.profile = job.options().profile;
  options.record = job.options().cuda_graph;
  options.tf32 = job.options().tf32;
  return options;
}

void Configure(const Job& job, GraphConfig& config) {
  const JobOptions& options = job.options();
  config.enable_zero({.stage = options.zero_stage,
                      .bucket_bytes = options.bucket_bytes(),
                      .shard_min_elements = options.shard_min_elements});
  config.set_micro_batches(options.micro_batches);
  if (options.clip_norm > 0) config.clip_gradients(options.clip_norm);
  config.set_dtype(ParseDType(options.dtype).value());  // one of the flag's choices
  config.set_reduce_every(options.reduce_every == "step" ? ReduceEvery::kStep
                                                         : ReduceEvery::kMicroBatch);
  for (const std::string& modules : options.recompute) config.recompute(modules);
  config.set_update_early(options.update_early);
  if (options.on_non_finite == "skip") config.set_on_non_finite(OnNonFinite::kSkip);
  if (options.on_non_finite == "ignore") config.set_on_non_finite(OnNonFinite::kIgnore);
}

StatusOr<int64_t> ResidentBytesNow() {
  ZG_ASSIGN_OR_RETURN(const ProcessMemory memory, ReadProcessMemory());
  return memory.resident_bytes;
}

}  // namespace zg::zero
