// RunTrace: writes the trace of a run's first steps, as the job's flags ask for it, as soon as they
// are done. A failure is a warning, and training goes on; the end of the run is then an error.
#pragma once

#include <cstdint>

#include "framework/base/status.h"
#include "framework/job/job.h"
#include "framework/train/trainer.h"

namespace zg {

class RunTrace {
 public:
  // Both must outlive it.
  RunTrace(const Job& job, Trainer& trainer);

  // Every rank must call the following, in the same order.

  // Before the first step: agrees with the other ranks on when it begins.
  Status Begin();
  void AfterStep();
  // After the last step, if there were fewer than requested.
  void Finish();

  // Why the trace was not written.
  const Status& failure() const { return failure_; }

 private:
  void Write();
  Status WriteFile();

  const Job& job_;
  Trainer& trainer_;
  int64_t num_steps_left_;  // until it is written; 0: it is written, or not requested
  int64_t start_ns_ = 0;    // on this rank's clock
  Status failure_;
};

}  // namespace zg
