#include "framework/plan/time_estimate.h"

#include <algorithm>

#include "framework/passes/predict_traffic.h"

namespace zg::plan {
namespace {

std::string AxesText(const Mesh& mesh, const std::vector<int>& axes) {
  std::string text;
  for (const int axis : axes) text += (text.empty() ? "" : ",") + mesh.axes()[axis].name;
  return text;
}

// Of the ranks that differ from rank 0 along the axes only, how many are on another host.
int64_t NumOnOtherHosts(const Mesh& mesh, const std::vector<int>& axes, const Machine& machine) {
  if (machine.ranks_per_host == 0) return 0;
  const std::vector<int> ranks = mesh.RanksAlong(0, axes);
  return std::count_if(ranks.begin(), ranks.end(),
                       [&](int rank) { return rank >= machine.ranks_per_host; });
}

}  // namespace

std::vector<AxesTraffic> TrafficOfAxes(const ir::Graph& graph, const Machine& machine) {
  const Mesh& mesh = graph.mesh();
  std::vector<AxesTraffic> traffic;
  for (const auto& [axes, by_op] : PredictTrafficByAxes(graph)) {
    const auto peers = static_cast<int64_t>(mesh.RanksAlong(0, axes).size()) - 1;
    if (peers == 0) continue;
    AxesTraffic along;
    along.axes = AxesText(mesh, axes);
    for (const auto& [op, collective] : by_op) {
      along.messages += collective.messages;
      along.bytes += collective.bytes;
    }
    along.host_bytes = along.bytes / peers * NumOnOtherHosts(mesh, axes, machine);
    traffic.push_back(std::move(along));
  }
  return traffic;
}

TimeEstimate EstimateTime(const std::vector<AxesTraffic>& traffic, const Computation& computation,
                          const Machine& machine) {
  TimeEstimate time;
  time.compute_ms = computation.flops / machine.gflops / 1e6;
  time.start_ms = static_cast<double>(computation.kernels) * machine.kernel_us / 1e3;
  const auto ms = [](int64_t bytes, double gb_s) {
    return static_cast<double>(bytes) / gb_s / 1e6;
  };
  for (const AxesTraffic& along : traffic) {
    time.latency_ms += static_cast<double>(along.messages) * machine.latency_us / 1e3;
    time.transfer_ms += ms(along.bytes - along.host_bytes, machine.bandwidth_gb_s);
    time.host_transfer_ms += ms(along.host_bytes, machine.host_bandwidth_gb_s);
  }
  return time;
}

}  // namespace zg::plan
