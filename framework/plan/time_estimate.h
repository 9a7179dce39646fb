// EstimateTime: how long a step takes on a machine of given speeds, by the alpha-beta model
// (Hockney 1994): a message of m bytes takes latency + m / bandwidth. Collectives on n ranks go
// around a ring, n-1 messages each and twice that for an all-reduce (Thakur et al. 2005).
// Collectives run on the compute stream, so nothing overlaps. Only counted operations take time:
// memory-bound work such as an optimizer's update comes on top.
#pragma once

#include <map>
#include <string>

#include "framework/passes/predict_traffic.h"

namespace zg::plan {

// The machine that a time is estimated for.
struct Machine {
  double bandwidth_gb_s = 10;  // of one rank's link
  double latency_us = 10;      // of one message
  double gflops = 100;         // of one rank
};

struct TimeEstimate {
  double compute_ms = 0;
  double latency_ms = 0;   // of all messages
  double transfer_ms = 0;  // of their bytes
  double step_ms() const { return compute_ms + latency_ms + transfer_ms; }
};

TimeEstimate EstimateTime(const std::map<std::string, PredictedTraffic>& traffic, double flops,
                          const Machine& machine);

}  // namespace zg::plan
