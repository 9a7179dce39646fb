// RunSaver: saves the checkpoints of a run, as the job's flags and signals ask for them. A save
// that fails is a warning, and training goes on; a failure of the last save is an error.
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/status.h"
#include "framework/job/job.h"
#include "framework/job/save_signals.h"
#include "framework/job/signal_agreement.h"
#include "framework/state/save_options.h"
#include "framework/train/trainer.h"

namespace zg {

class RunSaver {
 public:
  // Both must outlive it.
  RunSaver(const Job& job, Trainer& trainer, int64_t last_step);

  // Every rank must call the following, in the same order.

  // Call it before training. Locks the directory and allocates the memory of save_async, so that
  // errors come early.
  Status Prepare();

  // Call it after each step, which took `step_ms`. Returns true if a signal has ended the run; the
  // checkpoint of this step is then on the disk.
  StatusOr<bool> AfterStep(double step_ms);

  // Call it instead after the last step of a run that ends before the job's steps are taken.
  Status AfterLastStep();

 private:
  Status SaveLast(bool is_asked_by_signal);
  void SaveNow();
  void StartSave();
  void ContinueSave();
  void FinishSave();
  void Warn(const Status& status) const;
  void Print(const std::string& text) const;
  std::string PathOf(int64_t step) const;

  const Job& job_;
  const JobOptions& options_;
  Trainer& trainer_;
  const int64_t last_step_;
  const SaveOptions save_options_;
  const SaveSignals signals_;
  SignalAgreement agreement_;
  bool tells_when_saved_ = false;  // the save in progress was requested by a signal
  int64_t saved_step_ = -1;        // the last one whose save began
};

}  // namespace zg
