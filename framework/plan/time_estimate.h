// EstimateTime: how long a step takes on a machine of given speeds, by the alpha-beta model
// (Hockney 1994): a message of m bytes takes latency + m / bandwidth, and links inside a host and
// between hosts have bandwidths of their own. Every rank of a collective sends its part to each
// other rank, n-1 messages, and twice that for an all-reduce. A part that all ranks of another host
// need goes there once (comm/message_rounds.h), and so do large sums (comm/sum_route.h). Collectives that the program starts
// ahead run beside the computation, one after the other (two_queues.h); the others run in their
// place. A kernel takes its launch time plus the time of its counted operations. Memory-bound work
// such as an optimizer's update is not included, unless there are measured prices. With prices of
// transfers between the same ranks, these stand for the links (price_list.h).
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/graph.h"
#include "framework/plan/price_list.h"

namespace zg::plan {

// The machine that a time is estimated for.
struct Machine {
  double bandwidth_gb_s = 10;      // of one rank's link, inside a host
  double latency_us = 10;          // of one message
  double gflops = 100;             // of one rank
  double kernel_us = 5;            // launch time of a kernel
  int ranks_per_host = 0;          // neighbours on one host; 0: all are on one host
  double host_bandwidth_gb_s = 1;  // of one rank to ranks of other hosts
  // Measured times of nodes. Nodes that the list does not know, or all nodes if it is null, are
  // priced by gflops and kernel_us.
  std::shared_ptr<const PriceList> prices = nullptr;
};

// The host of each rank, as the lowest rank on it; empty: all are on one host.
std::vector<int> HostsOf(const Mesh& mesh, const Machine& machine);

// The ranks on each host, 0 if all are on one, from the lowest rank on the host of each rank. Error:
// hosts, but for the last, do not have as many ranks each, in order.
StatusOr<int> RanksPerHost(const std::vector<int>& hosts);

// Whether the machine has prices of transfers between the ranks of this mesh.
bool HasTransferPrices(const Mesh& mesh, const Machine& machine);

// The ranks of a collective that are not on the first one's host.
struct Elsewhere {
  int64_t ranks = 0;
  int64_t receivers = 0;  // of a part that each other host receives once (comm/message_rounds.h)
};
Elsewhere CountElsewhere(const std::vector<int>& ranks, int ranks_per_host);

// The bytes that one rank sends in a step along some axes of the mesh.
struct AxesTraffic {
  std::string axes;  // "data" or "data,shard"
  int64_t messages = 0;
  int64_t bytes = 0;
  int64_t host_bytes = 0;  // between the rank's host and others
};

// Follows from the data that the graph's collectives move.
std::vector<AxesTraffic> TrafficOfAxes(const ir::Graph& graph, const Machine& machine);

// The computation of one rank in a step.
struct Computation {
  double flops = 0;
  int64_t kernels = 0;
};

// The time of a step's nodes on one rank by a price list, without transfers.
struct PricedComputation {
  double compute_ms = 0;
  double same_types_ms = 0;        // the part of it for nodes whose types were measured
  double between_ms = 0;           // between nodes
  std::set<std::string> unpriced;  // ops that were not measured
};

struct TimeEstimate {
  double compute_ms = 0;
  double start_ms = 0;            // of all kernel launches; with prices, time between kernels
  double latency_ms = 0;          // of all messages
  double transfer_ms = 0;         // of bytes inside a host
  double host_transfer_ms = 0;    // and between hosts
  double priced_transfer_ms = 0;  // of all transfers by prices, instead of the three above
  double hidden_ms = 0;           // while messages are sent beside the computation
  double slowed_ms = 0;           // by what their sending takes of the computation's processors
  double step_ms() const {
    return compute_ms + start_ms + latency_ms + transfer_ms + host_transfer_ms +
           priced_transfer_ms - hidden_ms + slowed_ms;
  }
};

// The time of one call of a node: its kernel, and its transfer.
double ComputeMs(const ir::Graph& graph, const ir::Node& node, const Machine& machine);
PriceList::TransferPrice TransferPriceOf(const ir::Graph& graph, const ir::Node& node,
                                         const Machine& machine);

// The transfers of one rank in a step by a price list.
struct PricedTransfers {
  double ms = 0;
  double same_types_ms = 0;  // the part of it for transfers that were measured
};

// Needs HasTransferPrices.
PricedTransfers PriceTransfers(const ir::Graph& graph, const Machine& machine);

// The machine must have prices.
PricedComputation PriceComputation(const ir::Graph& graph, const Machine& machine);

TimeEstimate EstimateTime(const std::vector<AxesTraffic>& traffic, const Computation& computation,
                          const Machine& machine);

}  // namespace zg::plan
