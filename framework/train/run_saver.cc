#include "framework/train/run_saver.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <optional>

#include "framework/base/stopwatch.h"
#include "framework/io/checkpoint_names.h"
#include "framework/io/checkpoint_store.h"
#include "framework/job/console.h"

namespace zg {
namespace {

SaveOptions SaveOptionsOf(const JobOptions& options) {
  SaveOptions save_options;
  save_options.keep = options.keep;
  return save_options;
}

}  // namespace

RunSaver::RunSaver(const Job& job, Trainer& trainer, int64_t last_step)
    : job_(job),
      options_(job.options()),
      trainer_(trainer),
      last_step_(last_step),
      save_options_(SaveOptionsOf(job.options())),
      signals_(!job.options().save.empty()),
      agreement_(trainer.executor().communicator(), signals_) {}

Status RunSaver::Prepare() {
  if (options_.save.empty()) return Status::Ok();
  if (job_.is_main() && options_.resume.empty()) {
    if (const auto other = LatestCheckpoint(options_.save)) {
      spdlog::warn(
          "{} has {} of another run, which this one does not resume; it replaces checkpoints of the "
          "same steps{}",
          options_.save, *other, options_.keep > 0 ? ", and `keep` removes older ones" : "");
    }
  }
  ZG_RETURN_IF_ERROR(trainer_.prepare_saving(options_.save).WithContext("`save`"));
  if (!options_.save_async) return Status::Ok();
  return trainer_.reserve_for_saving().WithContext("`save_async`");
}

StatusOr<bool> RunSaver::AfterStep(double step_ms) {
  ZG_ASSIGN_OR_RETURN(const SignalDecision signals, agreement_.AfterStep(step_ms));
  const int64_t step = trainer_.steps_done();
  if (options_.save.empty()) {
    if (signals.save && job_.is_main()) {
      spdlog::warn("SIGUSR1: nothing is saved; give `save=DIR` for a place");
    }
    return false;
  }
  if (signals.end || step == last_step_) {
    ZG_RETURN_IF_ERROR(SaveLast(signals.end));
    return signals.end;
  }
  if (signals.were_together) ContinueSave();
  const bool is_due = options_.save_every > 0 && step % options_.save_every == 0;
  if (!is_due && !signals.save) return false;
  if (options_.save_async) {
    FinishSave();
    tells_when_saved_ = signals.save;
    StartSave();
  } else {
    tells_when_saved_ = signals.save;
    SaveNow();
  }
  return false;
}

Status RunSaver::AfterLastStep() {
  if (options_.save.empty()) return Status::Ok();
  if (saved_step_ == trainer_.steps_done()) return trainer_.finish_saving();
  return SaveLast(/*is_asked_by_signal=*/false);
}

Status RunSaver::SaveLast(bool is_asked_by_signal) {
  FinishSave();
  ZG_RETURN_IF_ERROR(trainer_.save(options_.save, save_options_).WithContext("`save`"));
  if (is_asked_by_signal) {
    Print(fmt::format("ended by a signal after step {}; saved in {}\n", trainer_.steps_done(),
                      PathOf(trainer_.steps_done())));
  }
  return Status::Ok();
}

void RunSaver::SaveNow() {
  const Status status = trainer_.save(options_.save, save_options_);
  if (!status.ok()) return Warn(status);
  saved_step_ = trainer_.steps_done();
  if (tells_when_saved_) Print(fmt::format("saved in {}\n", PathOf(trainer_.steps_done())));
}

void RunSaver::StartSave() {
  if (const Status status = trainer_.start_saving(options_.save, save_options_); !status.ok()) {
    return Warn(status);
  }
  saved_step_ = trainer_.steps_done();
}

void RunSaver::ContinueSave() {
  const std::optional<int64_t> step = trainer_.saving_step();
  if (!step) return;
  const StatusOr<bool> has_ended = trainer_.continue_saving();
  if (!has_ended.ok()) return Warn(has_ended.status());
  if (*has_ended && tells_when_saved_) Print(fmt::format("saved in {}\n", PathOf(*step)));
}

// Logs the wait, because the user should know if checkpoints come faster than the disk takes them.
void RunSaver::FinishSave() {
  const std::optional<int64_t> step = trainer_.saving_step();
  if (!step) return;
  const Stopwatch stopwatch;
  const Status status = trainer_.finish_saving();
  Print(fmt::format("step {}: training waited {:.0f} ms for the checkpoint of step {}\n",
                    trainer_.steps_done(), stopwatch.ms(), *step));
  if (!status.ok()) return Warn(status);
  if (tells_when_saved_) Print(fmt::format("saved in {}\n", PathOf(*step)));
}

void RunSaver::Warn(const Status& status) const {
  if (!job_.is_main()) return;
  spdlog::warn("`save`: {}\n  training goes on", status.message());
}

void RunSaver::Print(const std::string& text) const {
  if (job_.is_main()) print_out(text);
}

std::string RunSaver::PathOf(int64_t step) const {
  return options_.save + "/" + StepDirectoryName(step);
}

}  // namespace zg
