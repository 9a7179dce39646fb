#include "framework/plan/time_estimate.h"

#include <algorithm>
#include <map>
#include <utility>

#include "framework/passes/predict_traffic.h"
#include "framework/runtime/host_traffic.h"

namespace zg::plan {
namespace {

std::string AxesText(const Mesh& mesh, const std::vector<int>& axes) {
  std::string text;
  for (const int axis : axes) text += (text.empty() ? "" : ",") + mesh.axes()[axis].name;
  return text;
}

// The traffic of one execution of a node along some axes.
AxesTraffic Along(const ir::Graph& graph, const ir::Node& node, const std::vector<int>& axes,
                  const PredictedTraffic& traffic, const Machine& machine) {
  const Mesh& mesh = graph.mesh();
  AxesTraffic along = {AxesText(mesh, axes), traffic.messages, traffic.bytes};
  const std::vector<int> ranks = mesh.RanksAlong(0, axes);
  const auto peers = static_cast<int64_t>(ranks.size()) - 1;
  if (peers == 0 || machine.ranks_per_host == 0) return along;
  const Elsewhere elsewhere = CountElsewhere(ranks, machine.ranks_per_host);
  along.host_bytes = traffic.gathered / peers * elsewhere.receivers;
  const int64_t not_gathered = traffic.bytes - traffic.gathered;
  if (not_gathered == 0) return along;
  const int64_t of_sum = SumBytesBetweenHosts(graph, node, HostsOf(mesh, machine));
  along.host_bytes += of_sum > 0 ? of_sum : not_gathered / peers * elsewhere.ranks;
  return along;
}

// The time of a node with a kernel.
struct ComputeTime {
  double start_ms = 0;
  double ms = 0;
  PriceList::Basis basis = PriceList::Basis::kNone;
};

ComputeTime ComputeTimeOf(const ir::Graph& graph, const ir::Node& node, const Machine& machine) {
  Computation computation = {0, 1};
  if (node.op->flops != nullptr) {
    computation.flops = static_cast<double>(node.op->flops(node.LocalCall(graph.mesh())));
  }
  const TimeEstimate estimate = EstimateTime({}, computation, machine);
  ComputeTime time = {estimate.start_ms, estimate.compute_ms};
  if (machine.prices == nullptr) return time;
  time.start_ms = machine.prices->ms_between_kernels();
  if (ir::MovesData(node)) return time;  // its measured time includes waiting for other ranks
  const PriceList::Price price = machine.prices->Of(graph, node);
  if (price.basis == PriceList::Basis::kNone) return time;
  return {time.start_ms, price.ms, price.basis};
}

}  // namespace

std::vector<int> HostsOf(const Mesh& mesh, const Machine& machine) {
  std::vector<int> hosts;
  if (machine.ranks_per_host == 0) return hosts;
  for (int rank = 0; rank < mesh.num_ranks(); ++rank) {
    hosts.push_back(rank - rank % machine.ranks_per_host);
  }
  return hosts;
}

StatusOr<int> RanksPerHost(const std::vector<int>& hosts) {
  if (hosts.empty()) return 0;
  const auto on_first = static_cast<int>(std::count(hosts.begin(), hosts.end(), hosts[0]));
  const auto ranks = static_cast<int>(hosts.size());
  for (int rank = 0; rank < ranks; ++rank) {
    if (hosts[rank] == rank - rank % on_first) continue;
    return InvalidArgument(
        "got a rank {} on the host of rank {}, where the first host has {} ranks; expected as many "
        "ranks on every host, numbered host by host",
        rank, hosts[rank], on_first);
  }
  return on_first == ranks ? 0 : on_first;
}

bool HasTransferPrices(const Mesh& mesh, const Machine& machine) {
  if (machine.prices == nullptr) return false;
  if (static_cast<int>(machine.prices->ranks().hosts.size()) != mesh.num_ranks()) return false;
  std::vector<int> hosts = HostsOf(mesh, machine);
  if (hosts.empty()) hosts.assign(mesh.num_ranks(), 0);
  return machine.prices->HasTransfersBetween(hosts);
}

Elsewhere CountElsewhere(const std::vector<int>& ranks, int ranks_per_host) {
  if (ranks_per_host == 0) return {};
  std::map<int, int64_t> by_host;
  for (const int rank : ranks) ++by_host[rank / ranks_per_host];
  const int64_t on_first = by_host[ranks[0] / ranks_per_host];
  const auto others = static_cast<int64_t>(ranks.size()) - on_first;
  const bool are_equal = std::all_of(by_host.begin(), by_host.end(), [&](const auto& of_host) {
    return of_host.second == on_first;
  });
  return {others, are_equal ? static_cast<int64_t>(by_host.size()) - 1 : others};
}

PriceList::TransferPrice TransferPriceOf(const ir::Graph& graph, const ir::Node& node,
                                         const Machine& machine) {
  if (HasTransferPrices(graph.mesh(), machine)) return machine.prices->OfTransfer(graph, node);
  std::vector<AxesTraffic> traffic;
  for (const auto& [axes, along] : PredictTrafficOf(graph, node)) {
    traffic.push_back(Along(graph, node, axes, along, machine));
  }
  return {EstimateTime(traffic, {}, machine).step_ms(), 0, PriceList::Basis::kNone};
}

double ComputeMs(const ir::Graph& graph, const ir::Node& node, const Machine& machine) {
  if (!node.op->traits.has_kernel()) return 0;
  const ComputeTime time = ComputeTimeOf(graph, node, machine);
  return time.start_ms + time.ms;
}

PricedComputation PriceComputation(const ir::Graph& graph, const Machine& machine) {
  PricedComputation priced;
  ForEachNodeOfStep(graph, [&](const ir::Node& node, int64_t runs) {
    if (!node.op->traits.has_kernel()) return;
    const ComputeTime time = ComputeTimeOf(graph, node, machine);
    const double ms = time.ms * static_cast<double>(runs);
    priced.compute_ms += ms;
    priced.between_ms += time.start_ms * static_cast<double>(runs);
    if (time.basis == PriceList::Basis::kSameTypes) priced.same_types_ms += ms;
    if (time.basis == PriceList::Basis::kNone && !ir::MovesData(node)) {
      priced.unpriced.insert(node.op->name);
    }
  });
  return priced;
}

PricedTransfers PriceTransfers(const ir::Graph& graph, const Machine& machine) {
  PricedTransfers priced;
  ForEachNodeOfStep(graph, [&](const ir::Node& node, int64_t runs) {
    if (!ir::MovesData(node)) return;
    const PriceList::TransferPrice price = machine.prices->OfTransfer(graph, node);
    const double ms = price.ms * static_cast<double>(runs);
    priced.ms += ms;
    if (price.basis == PriceList::Basis::kSameTypes) priced.same_types_ms += ms;
  });
  return priced;
}

std::vector<AxesTraffic> TrafficOfAxes(const ir::Graph& graph, const Machine& machine) {
  std::map<std::vector<int>, AxesTraffic> by_axes;
  ForEachNodeOfStep(graph, [&](const ir::Node& node, int64_t runs) {
    for (const auto& [axes, traffic] : PredictTrafficOf(graph, node)) {
      if (graph.mesh().RanksAlong(0, axes).size() == 1) continue;
      const AxesTraffic along = Along(graph, node, axes, traffic, machine);
      AxesTraffic& sum = by_axes[axes];
      sum.axes = along.axes;
      sum.messages += runs * along.messages;
      sum.bytes += runs * along.bytes;
      sum.host_bytes += runs * along.host_bytes;
    }
  });
  std::vector<AxesTraffic> traffic;
  for (const auto& [axes, along] : by_axes) traffic.push_back(along);
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
