#include "framework/plan/time_estimate.h"

namespace zg::plan {

TimeEstimate EstimateTime(const std::map<std::string, PredictedTraffic>& traffic, double flops,
                          const Machine& machine) {
  TimeEstimate time;
  time.compute_ms = flops / machine.gflops / 1e6;
  for (const auto& [op, collective] : traffic) {
    time.latency_ms += static_cast<double>(collective.messages) * machine.latency_us / 1e3;
    time.transfer_ms += static_cast<double>(collective.bytes) / machine.bandwidth_gb_s / 1e6;
  }
  return time;
}

}  // namespace zg::plan
