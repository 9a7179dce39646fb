// Report: the results of a finished run. --report writes it as one JSON object; the summary shows
// parts of it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/ir/memory_category.h"
#include "framework/ir/variant.h"
#include "framework/job/flag_value.h"
#include "framework/runtime/profile.h"

namespace zg {

// What a step trains on, over all ranks; 0: unknown.
struct StepWork {
  int64_t samples = 0;
  int64_t tokens = 0;
  double flops = 0;
};

struct StepRecord {
  int64_t step = 0;  // the first is 1
  double loss = 0.0;
  std::optional<double> grad_norm;
  double lr = 0.0;
  double ms = 0.0;
  Variant variant = {};  // the size of its inputs, or its phase
  StepWork work = {};
};

// Digests of the whole logical tensors, in the order of their names.
struct FinalState {
  double param_sum = 0.0;
  std::string param_sha256;
  std::string optimizer_sha256;
  int64_t skipped_updates = 0;  // since the first step, because gradients were not finite
};

struct MemoryUse {
  std::array<int64_t, kNumMemoryCategories> category_bytes = {};  // indexed by MemoryCategory
  int64_t peak_bytes = 0;
};

struct Speed {
  double ms_per_step_median = 0.0;
  double tokens_per_s = 0.0;
  double flops_per_step = 0.0;  // by one rank; the median
  double compile_ms = 0.0;
};

struct Report {
  std::string model;
  std::string inputs;  // of one micro-batch: "x: i64[8,256], y: i64[8,256]"
  std::vector<ResolvedFlag> config;
  std::vector<StepRecord> steps;
  bool was_ended_by_signal = false;  // before its last step
  FinalState final_state;

  MemoryUse predicted_memory;
  MemoryUse measured_memory;
  std::vector<std::string> evals_not_run;    // whose memory is predicted, and was not measured
  int64_t rss_peak_bytes = 0;                // of rank 0's process, without its peers' memory
  int64_t rss_before_graph_bytes = 0;        // of rank 0's process, before the model was built
  int64_t device_library_bytes = 0;          // of rank 0's device, beside the arena
  std::vector<int64_t> per_rank_peak_bytes;  // measured, by rank
  int64_t saving_bytes = 0;                  // host memory of a rank beside its arena, maximum over
                                             // ranks
  int64_t result_bytes = 0;                  // host memory of a rank for the results of a step

  std::string transport;   // Communicator::transport()
  std::vector<int> hosts;  // of each rank, by their numbers
  int processors = 1;      // that rank 0 may run on
  std::string arithmetic;  // Trainer::arithmetic()
  // Traffic of one step, sent by one rank.
  TrafficCounters predicted_traffic = {};
  TrafficCounters measured_traffic = {};

  Speed speed;
  // One for each size or phase that rank 0 ran; none without --profile.
  std::vector<Profile> profiles;
};

// The median of a value of the steps, without the first one, which warms up; 0 without steps.
double MedianOfSteps(const std::vector<StepRecord>& steps,
                     const std::function<double(const StepRecord& step)>& value);
double MedianStepMs(const std::vector<StepRecord>& steps);

// Losses and norms have 9 significant digits, which is every bit of an f32; values that are not
// finite are null.
std::string ReportAsJson(const Report& report);

// Writes the JSON under a temporary name and renames it.
Status WriteReport(const std::string& path, const Report& report);

// Whether a file of this name can be written; called before hours of training. Leaves nothing
// behind.
Status CheckWritable(const std::string& path);

}  // namespace zg
