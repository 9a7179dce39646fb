// PredictTraffic: the collectives of a compiled graph, with the bytes that reach one rank from the
// others (as many as it sends), before anything runs. What a run measures (comm/traffic.h) is
// counted where bytes move, and equal.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/ir/graph.h"

namespace zg {

struct PredictedTraffic {
  int64_t count = 0;
  int64_t messages = 0;  // that one rank sends
  int64_t bytes = 0;     // of rank 0, whose part of an uneven sum is a largest one
};

// Of one training step, by op name. Bytes follow the boxing table (boxing.h) with the part T/n
// rounded up to whole elements; forward and backward count once per local micro-batch.
std::map<std::string, PredictedTraffic> PredictTraffic(const ir::Graph& graph);

// The same by the mesh axes, in ascending order, along which the ranks talk that take part.
std::map<std::vector<int>, std::map<std::string, PredictedTraffic>> PredictTrafficByAxes(
    const ir::Graph& graph);

// Of one execution of a node, by mesh axes; empty: it sends nothing.
std::map<std::vector<int>, PredictedTraffic> PredictTrafficOf(const ir::Graph& graph,
                                                              const ir::Node& node);

// Of one execution of a node; 0: it sends nothing.
int64_t SentBytes(const ir::Graph& graph, const ir::Node& node);

// Floating-point operations of one rank in one training step; large jobs have more than an int64_t
// holds.
double PredictFlops(const ir::Graph& graph);

// Kernels that one rank starts in one training step.
int64_t PredictKernels(const ir::Graph& graph);

}  // namespace zg
