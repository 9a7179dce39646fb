// RunTraining: the loop that programs share: steps with progress on rank 0, then everything that a
// report holds. Data and what happens between steps come from the program.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "framework/base/status.h"
#include "framework/job/job.h"
#include "framework/job/report.h"
#include "zero/trainer.h"

namespace zg::zero {

struct TrainingRun {
  std::string model;  // its name in the report
  // What decides the bits besides the job's flags and the optimizer, as Trainer::SetSetting.
  std::map<std::string, std::string> settings;
  int64_t steps = 0;
  double lr = 0;                       // before the factor of the schedule, which flags choose
  int64_t tokens_per_step = 0;         // over all ranks; 0: a model without tokens
  int64_t rss_before_graph_bytes = 0;  // of this process, before the model was built

  // Sets the inputs of micro-batch `micro_batch` (over all ranks) of step `step` (the first is 1).
  std::function<Status(Trainer& trainer, int64_t step, int64_t micro_batch)> feed;
  std::function<Status(Trainer& trainer, int64_t step)> after_step;  // null: nothing
};

// Every rank calls it; the report is complete on rank 0. Resumes and saves as the job's flags say;
// a save that fails is told, and training goes on unless it was the last.
StatusOr<Report> RunTraining(Job& job, Trainer& trainer, const TrainingRun& run);

// Options for Trainer::Compile and the graph's configuration, from the job's flags.
TrainerOptions TrainerOptionsOf(const Job& job);
void Configure(const Job& job, GraphConfig& config);

// Resident bytes of this process now; call it before building the model.
StatusOr<int64_t> ResidentBytesNow();

}  // namespace zg::zero
