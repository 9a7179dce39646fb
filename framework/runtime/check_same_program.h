// CheckSameProgram: detects before step 1 whether ranks compiled different graphs, which would make
// them hang or mix data.
#pragma once

#include <cstdint>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/ir/graph.h"

namespace zg {

// Compares the hash of the seed and the printed graph over all ranks; every rank must call it.
// Error on every rank: the first differing line, as rank 0 and the first differing rank have it.
Status CheckSameProgram(const ir::Graph& graph, uint64_t seed, Communicator& communicator);

}  // namespace zg
