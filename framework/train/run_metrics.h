// RunMetrics: writes the numbers of a run as the job's flags ask for them. If they can no longer be
// written, that is a warning, and training goes on; the end of the run is then an error.
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

class RunMetrics {
 public:
  // Both must outlive it.
  RunMetrics(const Job& job, Trainer& trainer) : job_(job), trainer_(trainer) {}

  // Opens the files, after the trainer has resumed.
  Status Open();
  // Prints what Open has removed, if anything.
  void PrintStart() const;

  // Every rank must call this. Error: the ranks have lost contact.
  Status AfterStep(const StepRecord& record);
  // Logs a value of the program for the last step.
  void Log(std::string_view name, double value);

  // The first error while writing.
  const Status& failure() const { return failure_; }

 private:
  void WriteScalars(const StepRecord& record);
  Status WriteHistograms(int64_t step);
  void Write(int64_t step, const std::vector<NamedScalar>& values);
  void Note(int64_t step, const Status& status);

  const Job& job_;
  Trainer& trainer_;
  std::unique_ptr<Metrics> metrics_;  // on rank 0, if requested
  Status failure_;
};

}  // namespace zg
