// The traffic of a compiled graph whose ranks exchange messages on several hosts: what PredictTraffic
// has, apart from sums that are passed from host to host (comm/sum_route.h), where ranks receive
// unequally much.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/ir/graph.h"
#include "framework/passes/predict_traffic.h"

namespace zg {

// Traffic of rank 0 in one training step, by op name. `hosts[r]` is the host of rank r: any number, the
// same for ranks on one host. Empty: there are no messages.
std::map<std::string, PredictedTraffic> PredictTrafficOnHosts(const ir::Graph& graph,
                                                              const std::vector<int>& hosts);

// The bytes of the terms and sums that each rank of the busiest host sends to other hosts, or receives
// from them, in one execution of the node, on the host's average. 0 if the node sums nothing over
// ranks.
int64_t SumBytesBetweenHosts(const ir::Graph& graph, const ir::Node& node,
                             const std::vector<int>& hosts);

}  // namespace zg
