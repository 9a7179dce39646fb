// EstimateTime: how long a step takes on a machine of given speeds, by the alpha-beta model
// (Hockney 1994): a message of m bytes takes latency + m / bandwidth. Collectives on n ranks go
// around a ring, n-1 messages each and twice that for an all-reduce (Thakur et al. 2005).
// Collectives run on the compute stream, so nothing overlaps. Only counted operations take time:
// memory-bound work such as an optimizer's update comes on top.
#pragma once

#include <map>
#include <string>

#include "framework/passes/predict_traffic.h"
#include "tools/plan/plan_options.h"

namespace zg::plan {

struct TimeEstimate {
  double compute_ms = 0;
  double latency_ms = 0;   // of all messages
  double transfer_ms = 0;  // of their bytes
  double step_ms() const { return compute_ms + latency_ms + transfer_ms; }
};

TimeEstimate EstimateTime(const std::map<std::string, PredictedTraffic>& traffic, double flops,
                          const PlanOptions& options);

}  // namespace zg::plan
