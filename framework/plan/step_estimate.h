// EstimateStep: the time of a program's step on a machine, with what its transfers hide behind
// the computation.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/passes/program.h"
#include "framework/plan/time_estimate.h"
#include "framework/plan/two_queues.h"

namespace zg::plan {

struct StepEstimate {
  TimeEstimate time;
  int64_t kernels = 0;  // that one rank launches
  std::vector<AxesTraffic> traffic_of_axes;
  std::optional<PricedComputation> priced;          // if the machine has prices
  std::optional<PricedTransfers> priced_transfers;  // if those have transfers of such ranks
  StepOnQueues queues;
};

StepEstimate EstimateStep(const Program& program, const Machine& machine);

}  // namespace zg::plan
