#include "framework/runtime/host_traffic.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "framework/comm/group.h"
#include "framework/comm/sum_plan.h"
#include "framework/comm/sum_route.h"
#include "framework/runtime/boxing/boxing_kernel.h"

namespace zg {
namespace {

// A sum over ranks, as the group of rank 0 does it.
struct SumOverRanks {
  std::vector<int> hosts;       // by rank in the group
  std::vector<int> fold_order;  // of the group's ranks
  Parts parts;                  // in elements
  ReductionTypes types;
  bool has_accumulator = false;
};

std::optional<SumOverRanks> SumOf(const ir::Graph& graph, const ir::Node& node,
                                  const std::vector<int>& hosts_of_job) {
  if (!IsBoxing(node) || SentBytes(graph, node) == 0) return std::nullopt;
  const BoxingNode boxing(graph, node);
  std::vector<int> axes = boxing.split_axes;
  axes.insert(axes.end(), boxing.copied_axes.begin(), boxing.copied_axes.end());
  if (axes.empty() || !node.inputs[0]->sbp[axes[0]].is_partial()) return std::nullopt;
  const std::vector<int> ranks = graph.mesh().RanksAlong(0, axes);
  const auto num_ranks = static_cast<int64_t>(ranks.size());
  const int64_t elements = boxing.input.shape.num_elements();
  SumOverRanks sum = {{},
                      {},
                      {elements, (elements + num_ranks - 1) / num_ranks},
                      boxing.types(),
                      boxing.has_accumulator};
  for (const int rank : ranks) sum.hosts.push_back(hosts_of_job[rank]);
  sum.fold_order = InFoldOrder(ranks);
  return sum;
}

bool AreOnOneHost(const std::vector<int>& hosts) {
  return std::all_of(hosts.begin(), hosts.end(), [&](int host) { return host == hosts[0]; });
}

// The bytes that rank 0 receives beyond those of terms that all go directly to the owner of their part.
class Detours {
 public:
  int64_t BytesOf(const SumOverRanks& sum, bool continues) {
    if (AreOnOneHost(sum.hosts) || !MayGoAlongHosts(sum.types, sum.parts.part)) return 0;
    const SumBytes bytes = SumBytesOf(sum.types, continues);
    const auto others = static_cast<int64_t>(sum.hosts.size()) - 1;
    return PlanOf(sum, bytes).ReceivedBytes(0, sum.parts, bytes) -
           sum.parts.count(0) * others * bytes.term;
  }

 private:
  // Buckets have the same few plans.
  const SumPlan& PlanOf(const SumOverRanks& sum, const SumBytes& bytes) {
    const auto key = std::tuple(sum.hosts, sum.fold_order, bytes.term, bytes.sum, bytes.continues);
    auto found = plans_.find(key);
    if (found == plans_.end()) {
      found = plans_.emplace(key, PlanSum(sum.hosts, sum.fold_order, 0, bytes)).first;
    }
    return found->second;
  }

  std::map<std::tuple<std::vector<int>, std::vector<int>, int64_t, int64_t, bool>, SumPlan> plans_;
};

}  // namespace

std::map<std::string, PredictedTraffic> PredictTrafficOnHosts(const ir::Graph& graph,
                                                              const std::vector<int>& hosts) {
  std::map<std::string, PredictedTraffic> traffic = PredictTraffic(graph);
  if (hosts.empty() || AreOnOneHost(hosts)) return traffic;
  Detours detours;
  ForEachNodeOfStep(graph, [&](const ir::Node& node, int64_t runs) {
    const std::optional<SumOverRanks> sum = SumOf(graph, node, hosts);
    if (!sum) return;
    // The first micro-batch overwrites an accumulator.
    int64_t& bytes = traffic[node.op->name].bytes;
    bytes += detours.BytesOf(*sum, false);
    if (runs > 1) bytes += (runs - 1) * detours.BytesOf(*sum, sum->has_accumulator);
  });
  return traffic;
}

int64_t SumBytesBetweenHosts(const ir::Graph& graph, const ir::Node& node,
                             const std::vector<int>& hosts) {
  const std::optional<SumOverRanks> sum = SumOf(graph, node, hosts);
  if (!sum || AreOnOneHost(sum->hosts)) return 0;
  std::vector<int> in_order;
  for (const int rank : sum->fold_order) in_order.push_back(sum->hosts[rank]);
  const bool continues = sum->has_accumulator && RunsPerStep(graph, *node.section) > 1;
  const SumBytes bytes = SumBytesOf(sum->types, continues);
  const auto of_first =
      static_cast<int64_t>(std::count(in_order.begin(), in_order.end(), in_order[0]));
  const auto others = static_cast<int64_t>(in_order.size()) - of_first;
  const int64_t per_element = MayGoAlongHosts(sum->types, sum->parts.part)
                                  ? MostBytesBetweenHosts(in_order, bytes) / of_first
                                  : others * bytes.term;
  return sum->parts.part * per_element;
}

}  // namespace zg
