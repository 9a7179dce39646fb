// PlanJob: predicts a job from its program before it runs: the memory of one rank over time, its
// traffic, its flops, and the tensors that are not sharded. No weights are allocated.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/passes/memory_timeline.h"
#include "framework/passes/program.h"
#include "framework/plan/owned.h"
#include "framework/plan/replicated.h"
#include "framework/plan/time_estimate.h"
#include "framework/plan/transfer_list.h"

namespace zg::plan {

// A node of the training program, in the order of execution.
struct ScheduledNode {
  std::string section;  // "forward", "backward" or "update"
  std::string op;
  std::string scope;  // the module; "" if the node belongs to none
  std::string value;  // its first output, or its input if it has no output
  CategoryBytes alive = {};
  int64_t alive_bytes = 0;
};

// What a step needs at one size of the inputs, or in one phase (Graph::train).
struct VariantPlan {
  Variant variant = {};
  int64_t peak_bytes = 0;
  double flops = 0;
  double step_ms = 0;
};

// The plan of one rank; the plans of all ranks are the same.
struct JobPlan {
  std::string model;        // the graph's name
  std::string description;  // of the model, for people
  int64_t num_parameters = 0;
  int ranks = 1;
  CompileOptions options;  // resolved
  std::string inputs;      // of one micro-batch: "x: i64[8,256], y: i64[8,256]"
  Machine machine;         // the machine that times are estimated for

  CategoryBytes category_bytes = {};
  int64_t peak_bytes = 0;  // the arena
  int64_t lower_bound_bytes = 0;
  int64_t kept_bytes = 0;    // bytes of activations that forward computes and backward reads
  int64_t saving_bytes = 0;  // host memory beside the arena for the copy of a save_async checkpoint
  int64_t result_bytes = 0;  // likewise for what a step hands out: the loss and further results

  std::vector<PlannedBuffer> buffers;  // the buffers that have bytes
  std::vector<ScheduledNode> schedule;
  int peak = -1;                          // index in the schedule
  std::vector<PlannedBuffer> peak_alive;  // at that moment, largest first

  std::map<std::string, PredictedTraffic> traffic;  // per step, by op
  int64_t sent_bytes = 0;                           // total
  std::vector<AxesTraffic> traffic_of_axes;         // the same by mesh axes
  std::vector<PlannedTransfer> transfers;           // the same node by node
  RaceProof races;                                  // of what runs beside them
  double flops = 0;                                 // per step
  int64_t kernels = 0;                              // launched per step
  TimeEstimate time;
  std::vector<QueueSlice> computing, sending;  // nodes of the schedule in a step (two_queues.h)
  std::optional<PricedComputation> priced;     // by the machine's prices, if it has them
  std::optional<PricedTransfers> priced_transfers;  // if it has those of such ranks
  std::vector<Replicated> replicated;
  Owned owned;
  // If inputs have several sizes: each of them, ascending. What else this describes is the largest;
  // the arena has room for each. If there are phases: the first one, which else is described, last.
  std::vector<VariantPlan> variants;
  double compile_ms = 0;

  double ratio() const {  // 1: no bytes are lost to fragmentation
    return static_cast<double>(peak_bytes) / static_cast<double>(lower_bound_bytes);
  }
};

// `description` describes the model; "": its name.
JobPlan PlanJob(const Program& program, const Machine& machine,
                const std::string& description = "");

}  // namespace zg::plan
