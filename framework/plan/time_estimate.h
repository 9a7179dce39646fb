// EstimateTime: how long a step takes on a machine of given speeds, by the alpha-beta model
// (Hockney 1994): a message of m bytes takes latency + m / bandwidth, and links inside a host and
// between hosts have bandwidths of their own. Every rank of a collective sends each other one its
// part, n-1 messages, and twice that for an all-reduce. Those that the program starts ahead run beside
// the computation, one after the other (two_queues.h); the others in their place. Starting a kernel takes
// its time, and only counted operations take more: memory-bound work such as an optimizer's update comes
// on top, unless there are measured prices.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "framework/ir/graph.h"
#include "framework/plan/price_list.h"

namespace zg::plan {

// The machine that a time is estimated for.
struct Machine {
  double bandwidth_gb_s = 10;      // of one rank's link, inside a host
  double latency_us = 10;          // of one message
  double gflops = 100;             // of one rank
  double kernel_us = 5;            // to start a kernel
  int ranks_per_host = 0;          // neighbours; 0: all are on one host
  double host_bandwidth_gb_s = 1;  // of one rank to ranks of other hosts
  // What nodes were measured to take; those that it does not know, or all if it is null, take what
  // gflops and kernel_us say.
  std::shared_ptr<const PriceList> prices = nullptr;
};

// What one rank sends in a step along some axes of the mesh.
struct AxesTraffic {
  std::string axes;  // "data" or "data,shard"
  int64_t messages = 0;
  int64_t bytes = 0;
  int64_t host_bytes = 0;  // of these, to ranks of other hosts
};

// By what the collectives of the graph move, each rank as much to every other rank of a collective.
std::vector<AxesTraffic> TrafficOfAxes(const ir::Graph& graph, const Machine& machine);

// What one rank computes in a step.
struct Computation {
  double flops = 0;
  int64_t kernels = 0;
};

// What the nodes of a step take on one rank by a list of prices, without transfers.
struct PricedComputation {
  double compute_ms = 0;
  double same_types_ms = 0;        // of these, for nodes whose types were measured
  double between_ms = 0;           // between nodes
  std::set<std::string> unpriced;  // ops that were not measured
};

struct TimeEstimate {
  double compute_ms = 0;
  double start_ms = 0;          // of all kernels; with prices, between them
  double latency_ms = 0;        // of all messages
  double transfer_ms = 0;       // of bytes inside a host
  double host_transfer_ms = 0;  // and between hosts
  double hidden_ms = 0;         // in which messages travel beside the computation
  double step_ms() const {
    return compute_ms + start_ms + latency_ms + transfer_ms + host_transfer_ms - hidden_ms;
  }
};

// What one call of a node takes: its kernel, and what it sends.
double ComputeMs(const ir::Graph& graph, const ir::Node& node, const Machine& machine);
double TransferMs(const ir::Graph& graph, const ir::Node& node, const Machine& machine);

// How often one rank runs forward and backward in a step.
int64_t MicroSteps(const ir::Graph& graph);

// The machine must have prices.
PricedComputation PriceComputation(const ir::Graph& graph, const Machine& machine);

TimeEstimate EstimateTime(const std::vector<AxesTraffic>& traffic, const Computation& computation,
                          const Machine& machine);

}  // namespace zg::plan
