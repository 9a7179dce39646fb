// CheckSameProgram: ranks that compiled different graphs are told so before step 1, instead of
// hanging or mixing data.
#pragma once

#include "framework/base/status.h"
#include "framework/comm/communicator.h"
#include "framework/ir/graph.h"

namespace zg {

// Compares the hash of the printed graph over all ranks; every rank must call it. Error on every
// rank: the first line that differs, with the ranks that hold either form.
Status CheckSameProgram(const Graph& graph, Communicator& communicator);

}  // namespace zg
