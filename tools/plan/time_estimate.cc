#include "tools/plan/time_estimate.h"

namespace zg::plan {

TimeEstimate EstimateTime(const std::map<std::string, PredictedTraffic>& traffic, double flops,
                          const PlanOptions& options) {
  TimeEstimate time;
  time.compute_ms = flops / options.gflops / 1e6;
  for (const auto& [op, collective] : traffic) {
    const double messages =
        static_cast<double>(collective.count) * (options.ranks - 1) * (op == "all_reduce" ? 2 : 1);
    time.latency_ms += messages * options.latency_us / 1e3;
    time.transfer_ms += static_cast<double>(collective.bytes) / options.bandwidth_gb_s / 1e6;
  }
  return time;
}

}  // namespace zg::plan
