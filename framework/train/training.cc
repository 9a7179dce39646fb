#include "framework/train/training.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "framework/base/stopwatch.h"
#include "framework/base/threads.h"
#include "framework/io/checkpoint_reader.h"
#include "framework/job/console.h"
#include "framework/job/progress.h"
#include "framework/job/summary.h"
#include "framework/optim/schedule.h"
#include "framework/runtime/host_traffic.h"
#include "framework/train/report_state.h"
#include "framework/train/run_metrics.h"
#include "framework/train/run_saver.h"
#include "framework/train/run_trace.h"

namespace zg {
namespace {

TrafficCounters PerStep(TrafficCounters sum, int64_t steps) {
  for (Traffic& traffic : sum) {
    traffic.count /= steps;
    traffic.bytes /= steps;
  }
  return sum;
}

TrafficCounters Predicted(const std::map<std::string, PredictedTraffic>& traffic) {
  TrafficCounters counters = {};
  for (int i = 0; i < kNumCollectiveKinds; ++i) {
    const auto found = traffic.find(std::string(CollectiveName(static_cast<CollectiveKind>(i))));
    if (found != traffic.end()) counters[i] = {found->second.count, found->second.bytes};
  }
  return counters;
}

std::string InputsOf(const Program& program) {
  const auto inputs = program.settings.find("inputs");
  return inputs == program.settings.end() ? "" : inputs->second;
}

StatusOr<optim::Schedule> ScheduleOf(const JobOptions& options) {
  optim::Schedule schedule;
  ZG_ASSIGN_OR_RETURN(schedule.decay, optim::ParseDecay(options.lr_schedule));
  schedule.warmup_steps = options.warmup_steps;
  schedule.total_steps = options.steps;
  schedule.final_factor = options.final_lr_factor;
  return schedule;
}

// The flags that determine the bits of further steps; the trainer knows the rest.
void SetSettings(const JobOptions& options, const std::map<std::string, std::string>& settings,
                 Trainer& trainer) {
  for (const auto& [name, value] : settings) trainer.set_setting(name, value);
  trainer.set_setting("batch", fmt::to_string(options.batch));
  trainer.set_setting("lr-schedule", options.lr_schedule);
  trainer.set_setting("warmup-steps", fmt::to_string(options.warmup_steps));
  if (options.lr_schedule == "constant") return;  // more steps do not change the schedule
  trainer.set_setting("final-lr-factor", fmt::to_string(options.final_lr_factor));
  trainer.set_setting("steps", fmt::to_string(options.steps));
}

Status Resume(const JobOptions& options, const TrainingOptions& training, Trainer& trainer) {
  if (training.before_resume) {
    // A checkpoint that cannot be opened is an error of resume().
    const StatusOr<CheckpointReader> checkpoint = CheckpointReader::Open(options.resume);
    if (checkpoint.ok()) {
      ZG_RETURN_IF_ERROR(training.before_resume(trainer, checkpoint->state().step));
    }
  }
  return trainer.resume(options.resume, training.groups);
}

Status ResumeIfAsked(const Job& job, const TrainingOptions& training, Trainer& trainer) {
  const JobOptions& options = job.options();
  if (options.resume.empty()) return Status::Ok();
  ZG_RETURN_IF_ERROR(Resume(options, training, trainer).WithContext("`resume`"));
  if (trainer.steps_done() > options.steps) {
    return InvalidArgument("`steps`: got {}, but the checkpoint in {} is of step {} already",
                           options.steps, options.resume, trainer.steps_done());
  }
  return Status::Ok();
}

ProgressOptions ProgressOptionsOf(const Job& job, const Trainer& trainer) {
  ProgressOptions options;
  options.total_steps = job.options().steps;
  options.peak_memory_bytes = trainer.program().memory.arena_bytes;
  options.terminal_columns = TerminalColumns();
  return options;
}

}  // namespace

struct Training::Impl {
  Impl(Job& the_job, std::unique_ptr<Trainer> the_trainer, TrainingOptions the_options)
      : job(the_job),
        trainer(std::move(the_trainer)),
        options(std::move(the_options)),
        progress(ProgressOptionsOf(job, *trainer)),
        saver(job, *trainer, job.options().steps),
        metrics(job, *trainer),
        trace(job, *trainer) {}

  const Program& ProgramOfStep() const;  // of the step that is next
  StepWork WorkOf(const Program& program) const;
  const TrafficCounters& PredictedTrafficOf(const Program& program);
  Status Begin();
  void PrintStart() const;
  StatusOr<bool> Next();
  float Step(const std::function<StatusOr<float>()>& run);
  StatusOr<float> RunStep(const std::function<StatusOr<float>()>& run);
  Status Stop();
  void Leave() const;
  Status Finish();
  Status FinishUnsaved(const Status& not_saved);
  Status WriteResults() const;

  Job& job;
  std::unique_ptr<Trainer> trainer;
  TrainingOptions options;
  Progress progress;
  RunSaver saver;
  RunMetrics metrics;
  RunTrace trace;
  optim::Schedule schedule;
  // That of one step, by the number of the program (Trainer::num_programs) and its variant.
  std::map<std::pair<int64_t, std::string>, TrafficCounters> predicted_traffic;
  TrafficCounters predicted_of_steps = {};  // so far
  int64_t step_number = 0;                  // of the step that Next() began
  bool has_stepped = false;                 // since then
  bool has_ended = false;
  Report report;
};

Status Training::Impl::Begin() {
  report.model = trainer->program().graph.name();
  report.inputs = InputsOf(trainer->program());
  report.config = job.config();
  const Communicator& communicator = trainer->executor().communicator();
  report.transport = communicator.transport();
  report.hosts = communicator.hosts();
  if (report.hosts.empty()) report.hosts.assign(communicator.size(), 0);
  report.processors = NumUsableCores();
  const Program& largest = trainer->program();
  report.predicted_traffic = PredictedTrafficOf(largest);
  report.speed.compile_ms = trainer->program().compile_ms + trainer->create_ms();
  report.speed.flops_per_step = largest.flops;
  ZG_RETURN_IF_ERROR(job.claim_files(report.model, options.summarizes));
  ZG_ASSIGN_OR_RETURN(schedule, ScheduleOf(job.options()));
  SetSettings(job.options(), options.settings, *trainer);
  ZG_RETURN_IF_ERROR(saver.Prepare());
  ZG_RETURN_IF_ERROR(ResumeIfAsked(job, options, *trainer));
  report.saving_bytes = trainer->reserved_for_saving_bytes();
  for (const Executor* executor : trainer->executors()) {
    report.result_bytes += executor->step_result_bytes();
  }
  ZG_RETURN_IF_ERROR(trace.Begin());
  return metrics.Open();
}

void Training::Impl::PrintStart() const {
  if (!job.is_main()) return;
  print_out(ConfigurationTable(job.config()));
  if (!job.options().resume.empty()) {
    const bool is_done = trainer->steps_done() >= job.options().steps;
    print_out(fmt::format("resumed after step {}{}\n", trainer->steps_done(),
                          is_done ? ", with all steps done" : ""));
  }
  metrics.PrintStart();
}

StepWork Training::Impl::WorkOf(const Program& program) const {
  const int64_t micro_batches = program.options.micro_batches;
  StepWork work;
  work.samples = options.samples_per_micro_batch * micro_batches;
  work.tokens = options.tokens_per_micro_batch * micro_batches;
  const int64_t size = program.variant.size;
  if (size != 0) work.tokens = work.tokens * size / trainer->program().variant.size;
  work.flops = program.flops * job.size();
  return work;
}

const TrafficCounters& Training::Impl::PredictedTrafficOf(const Program& program) {
  const auto [found, is_new] =
      predicted_traffic.try_emplace({trainer->num_programs(), program.variant.ToString()});
  if (is_new) {
    found->second =
        Predicted(PredictTrafficOnHosts(program.graph, trainer->executor().communicator().hosts()));
  }
  return found->second;
}

StatusOr<bool> Training::Impl::Next() {
  if (has_ended) return false;
  if (step_number == trainer->steps_done() + 1) {
    return FailedPrecondition(
        "next() was called again before step {} was taken; leave out data by taking the step with "
        "other data",
        step_number);
  }
  if (has_stepped) {
    trace.AfterStep();
    const StatusOr<bool> is_ended = saver.AfterStep(report.steps.back().ms);
    has_stepped = false;
    if (!is_ended.ok()) return FinishUnsaved(is_ended.status());
    report.was_ended_by_signal = *is_ended;
  }
  has_ended = report.was_ended_by_signal || trainer->steps_done() >= job.options().steps;
  if (has_ended) ZG_RETURN_IF_ERROR(Finish());
  step_number = trainer->steps_done() + 1;
  return !has_ended;
}

Status Training::Impl::Stop() {
  if (has_ended) return Status::Ok();
  ZG_RETURN_IF_ERROR(trainer->executor().communicator().Barrier(
      fmt::format("Training::stop after step {}", trainer->steps_done())));
  if (has_stepped) trace.AfterStep();
  has_stepped = false;
  has_ended = true;
  if (const Status saved = saver.AfterLastStep(); !saved.ok()) return FinishUnsaved(saved);
  return Finish();
}

// What else the run has to show is not lost with its last checkpoint.
Status Training::Impl::FinishUnsaved(const Status& not_saved) {
  has_ended = true;
  (void)Finish();  // the first error is the one to know
  return not_saved;
}

// Ranks that train on would wait for one that has left.
void Training::Impl::Leave() const {
  if (has_ended) return;
  const Status left = trainer->executor().communicator().Barrier("leave the training");
  if (!left.ok()) job.check_on_all_ranks(left);
  if (report.steps.empty() || !job.is_main()) return;
  const JobOptions& flags = job.options();
  const bool loses = !flags.save.empty() || !flags.report.empty();
  spdlog::warn(
      "training is left after step {} of {}: {}; call Training::stop() to end it early",
      trainer->steps_done(), flags.steps,
      loses ? "neither the last checkpoint nor the report is written" : "there is no summary");
}

// Ranks without an error do not synchronise their status between steps.
float Training::Impl::Step(const std::function<StatusOr<float>()>& run) {
  const StatusOr<float> loss = RunStep(run);
  if (!loss.ok()) job.check_on_all_ranks(loss.status());
  return *loss;
}

StatusOr<float> Training::Impl::RunStep(const std::function<StatusOr<float>()>& run) {
  if (step_number == 0 || has_stepped || has_ended) {
    return FailedPrecondition(
        "call next() before each step, and step() only when it returned true");
  }
  const double of_program = trainer->lr_factor();
  const double factor = of_program * schedule.factor(step_number);
  trainer->set_lr_factor(factor);
  const Stopwatch stopwatch;
  const StatusOr<float> loss = run();
  trainer->set_lr_factor(of_program);
  ZG_RETURN_IF_ERROR(loss.status());
  const Program& program = trainer->stepping_program();
  AddDifference({}, PredictedTrafficOf(program), &predicted_of_steps);
  StepRecord record;
  record.step = step_number;
  record.loss = *loss;
  record.grad_norm = trainer->grad_norm();
  record.lr = program.lr * factor;
  record.ms = stopwatch.ms();
  record.variant = program.variant;
  record.work = WorkOf(program);
  report.steps.push_back(record);
  if (job.is_main()) progress.Step(record);
  ZG_RETURN_IF_ERROR(metrics.AfterStep(record));
  has_stepped = true;
  return loss;
}

Status Training::Impl::Finish() {
  progress.Finish();
  trace.Finish();
  report.arithmetic = trainer->arithmetic();
  const auto num_steps = static_cast<int64_t>(report.steps.size());
  if (num_steps > 0) {
    ZG_ASSIGN_OR_RETURN(const TrafficCounters measured, trainer->step_traffic());
    report.measured_traffic = PerStep(measured, num_steps);
    report.predicted_traffic = PerStep(predicted_of_steps, num_steps);
  }
  report.speed.ms_per_step_median = MedianStepMs(report.steps);
  if (report.speed.ms_per_step_median > 0) {
    const double tokens = MedianOfSteps(
        report.steps, [](const auto& step) { return static_cast<double>(step.work.tokens); });
    report.speed.tokens_per_s = 1e3 * tokens / report.speed.ms_per_step_median;
    report.speed.flops_per_step =
        MedianOfSteps(report.steps, [](const auto& step) { return step.work.flops; }) / job.size();
  }
  if (job.options().profile) {
    for (const Executor* executor : trainer->executors()) {
      if (auto profile = executor->profile()) report.profiles.push_back(*std::move(profile));
    }
  }
  ZG_RETURN_IF_ERROR(ReportMemory(job, *trainer, &report));
  ZG_RETURN_IF_ERROR(ReportFinalState(*trainer, &report));
  return ExchangeStatus(trainer->executor().communicator(), "write the results", WriteResults());
}

Status Training::Impl::WriteResults() const {
  if (!job.is_main()) return Status::Ok();
  if (options.summarizes) {
    print_out("\n" + Summary(report));
    const std::string& path = job.options().report;
    if (!path.empty()) ZG_RETURN_IF_ERROR(WriteReport(path, report));
  }
  ZG_RETURN_IF_ERROR(trace.failure());
  return metrics.failure();
}

Training::Training(Job& job, std::unique_ptr<Trainer> trainer, TrainingOptions options)
    : impl_(std::make_unique<Impl>(job, std::move(trainer), std::move(options))) {
  job.check_on_all_ranks(impl_->Begin());
  impl_->PrintStart();
}
Training::Training(Training&&) noexcept = default;
Training::~Training() {
  if (impl_ != nullptr) impl_->Leave();
}

bool Training::next() {
  const StatusOr<bool> has_next = impl_->Next();
  if (!has_next.ok()) impl_->job.check_on_all_ranks(has_next.status());
  return *has_next;
}

float Training::step_groups(const std::vector<std::string>& groups,
                            const std::vector<NamedData>& data) {
  return impl_->Step([&] { return impl_->trainer->step_groups(groups, data); });
}

float Training::step_groups(const std::vector<std::string>& groups,
                            const std::function<Status(int64_t micro_batch)>& feed) {
  return impl_->Step([&] { return impl_->trainer->step_groups(groups, feed); });
}

void Training::stop() { impl_->job.check_on_all_ranks(impl_->Stop()); }

int64_t Training::step_number() const { return impl_->step_number; }

float Training::step(const std::vector<NamedData>& data) {
  return impl_->Step([&] { return impl_->trainer->step(data); });
}

float Training::step(const std::function<Status(int64_t micro_batch)>& feed) {
  return impl_->Step([&] { return impl_->trainer->step(feed); });
}

void Training::log(std::string_view name, double value) { impl_->metrics.Log(name, value); }

Trainer& Training::trainer() { return *impl_->trainer; }
const Report& Training::report() const { return impl_->report; }

}  // namespace zg
