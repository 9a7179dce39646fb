#include "tests/zero/axes_traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "framework/passes/predict_traffic.h"

namespace zg::testing {
namespace {

// A group may list its ranks in another order than that of the job.
std::vector<int> Sorted(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::string AxesText(const Mesh& mesh, const std::vector<int>& axes) {
  std::vector<std::string> names;
  for (const int axis : axes) names.push_back(mesh.axes()[axis].name);
  return fmt::format("{}", fmt::join(names, ","));
}

}  // namespace

std::vector<AxesTraffic> TrafficByAxes(const ir::Graph& graph, int rank, const BytesByGroup& before,
                                       const BytesByGroup& after) {
  std::map<std::vector<int>, AxesTraffic> by_ranks;
  for (const auto& [axes, by_op] : PredictTrafficByAxes(graph)) {
    AxesTraffic& traffic = by_ranks[Sorted(graph.mesh().RanksAlong(rank, axes))];
    traffic.axes = AxesText(graph.mesh(), axes);
    for (const auto& [op, of_op] : by_op) traffic.predicted += of_op.bytes;
  }
  for (const auto& [ranks, bytes] : after) {
    const auto earlier = before.find(ranks);
    const int64_t of_steps = bytes - (earlier == before.end() ? 0 : earlier->second);
    if (of_steps == 0) continue;
    AxesTraffic& traffic = by_ranks[Sorted(ranks)];
    if (traffic.axes.empty()) traffic.axes = fmt::format("ranks {}", fmt::join(ranks, ","));
    traffic.measured += of_steps;
  }
  std::vector<AxesTraffic> all;
  for (const auto& [ranks, traffic] : by_ranks) {
    if (traffic.predicted != 0 || traffic.measured != 0) all.push_back(traffic);
  }
  return all;
}

}  // namespace zg::testing
