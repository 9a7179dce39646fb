// What reached a rank along each set of mesh axes, beside what the graph says (PredictTrafficByAxes).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/ir/graph.h"
#include "tests/testing/metered_communicator.h"

namespace zg::testing {

struct AxesTraffic {
  std::string axes;       // "data", "replica,shard"; "ranks 0,3" of a group along none
  int64_t predicted = 0;  // bytes, of one step
  int64_t measured = 0;   // bytes, of all steps
};

// From the counts of a MeteredCommunicator before and after the steps. Groups without bytes in both are
// left out.
std::vector<AxesTraffic> TrafficByAxes(const ir::Graph& graph, int rank, const BytesByGroup& before,
                                       const BytesByGroup& after);

}  // namespace zg::testing
