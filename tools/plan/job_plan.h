// PlanJob: everything that the compiler knows about a job before it runs: what one rank holds when,
// what it sends and computes, and what was not sharded. No weights are allocated.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/passes/memory_timeline.h"
#include "framework/passes/predict_traffic.h"
#include "tools/plan/plan_options.h"
#include "tools/plan/replicated.h"
#include "tools/plan/time_estimate.h"

namespace zg::plan {

// A node of the training program, in the order of execution.
struct ScheduledNode {
  std::string section;  // "forward", "backward" or "update"
  std::string op;
  std::string scope;  // the module; "" for what belongs to none
  std::string value;  // its first output, or what it reads when it has none
  CategoryBytes alive = {};
  int64_t alive_bytes = 0;
};

// Of one rank; every rank has the same.
struct JobPlan {
  PlanOptions options;
  std::string description;  // of the model
  int64_t num_parameters = 0;

  CategoryBytes category_bytes = {};
  int64_t peak_bytes = 0;  // the arena
  int64_t lower_bound_bytes = 0;
  int64_t saving_bytes = 0;  // host memory beside the arena that --save-async takes

  std::vector<PlannedBuffer> buffers;  // with bytes
  std::vector<ScheduledNode> schedule;
  int peak = -1;                          // in the schedule
  std::vector<PlannedBuffer> peak_alive;  // at that moment, largest first

  std::map<std::string, PredictedTraffic> traffic;  // per step, by op
  int64_t sent_bytes = 0;                           // all of it
  double flops = 0;                                 // per step
  TimeEstimate time;
  std::vector<Replicated> replicated;
  double compile_ms = 0;

  double ratio() const {  // 1: nothing is lost to fragmentation
    return static_cast<double>(peak_bytes) / static_cast<double>(lower_bound_bytes);
  }
};

// The options must be resolved. Errors: those of building and compiling the model.
StatusOr<JobPlan> PlanJob(const PlanOptions& options);

}  // namespace zg::plan
