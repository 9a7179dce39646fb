// RunMetrics: writes the numbers of a run as the job's flags ask for them. When they can no longer
// be written that is a warning, and training goes on; the end of the run is then an error.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/job/job.h"
#include "framework/job/metrics.h"
#include "framework/job/report.h"
#include "framework/train/trainer.h"

namespace zg {

// What one step trains on, over all ranks; 0: unknown.
struct StepSize {
  int64_t samples = 0;
  int64_t tokens = 0;
};

class RunMetrics {
 public:
  // Both must outlive it.
  RunMetrics(const Job& job, Trainer& trainer, StepSize step_size)
      : job_(job), trainer_(trainer), step_size_(step_size) {}

  // Opens the files, after the trainer has resumed.
  Status Open();
  // Tells what Open has removed, if anything.
  void PrintStart() const;

  // Every rank must call this. Error: the ranks are no longer together.
  Status AfterStep(const StepRecord& record);
  // A value that the program has for the last step.
  void Log(std::string_view name, double value);

  // The first error of writing.
  const Status& failure() const { return failure_; }

 private:
  void WriteScalars(const StepRecord& record);
  Status WriteHistograms(int64_t step);
  void Write(int64_t step, const std::vector<NamedScalar>& values);
  void Note(int64_t step, const Status& status);

  const Job& job_;
  Trainer& trainer_;
  const StepSize step_size_;
  std::unique_ptr<Metrics> metrics_;  // on rank 0, if they are asked for
  Status failure_;
};

}  // namespace zg
