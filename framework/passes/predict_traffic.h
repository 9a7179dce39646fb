// PredictTraffic: the collectives of a compiled graph, with the bytes that one rank receives from
// the others (as many as it sends), before anything runs. A run counts its bytes where they are
// moved (comm/traffic.h), and measures the same numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/ir/graph.h"

namespace zg {

struct PredictedTraffic {
  int64_t count = 0;
  int64_t messages = 0;  // sent by one rank
  int64_t bytes = 0;     // of rank 0, which has the largest part of an uneven sum
  int64_t gathered = 0;  // those of them of which every other rank gets the same
};

// Traffic of one training step, by op name. Bytes follow the boxing table (boxing.h) with the part
// T/n rounded up to whole elements; forward and backward count once per local micro-batch.
std::map<std::string, PredictedTraffic> PredictTraffic(const ir::Graph& graph);

// The same by mesh axes: the key is the axes, in ascending order, along which the participating
// ranks communicate.
std::map<std::vector<int>, std::map<std::string, PredictedTraffic>> PredictTrafficByAxes(
    const ir::Graph& graph);

// Traffic of one execution of a node, by mesh axes; empty if it sends nothing.
std::map<std::vector<int>, PredictedTraffic> PredictTrafficOf(const ir::Graph& graph,
                                                              const ir::Node& node);

// How often a rank runs the nodes of a section in one training step.
int64_t RunsPerStep(const ir::Graph& graph, const ir::Section& section);

// Calls visit(node, runs) for the nodes that a rank runs in one training step, in execution order.
template <typename Visit>
void ForEachNodeOfStep(const ir::Graph& graph, const Visit& visit) {
  for (const auto& section : graph.sections()) {
    const int64_t runs = RunsPerStep(graph, *section);
    if (runs == 0) continue;
    for (const ir::Node* node : section->nodes) visit(*node, runs);
  }
}

// Bytes of one execution of a node; 0 if it sends nothing.
int64_t SentBytes(const ir::Graph& graph, const ir::Node& node);

// Floating-point operations of one rank in one training step; a double because large jobs exceed an
// int64_t.
double PredictFlops(const ir::Graph& graph);

// Kernels that one rank starts in one training step.
int64_t PredictKernels(const ir::Graph& graph);

}  // namespace zg
