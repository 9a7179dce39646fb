// CheckRaces: proves of a planned program that no two accesses to the same bytes, of which one writes,
// lack an order. A rank has two queues: the computation, in the order of the program, and the transfers,
// in the order in which they are started (ir::IsStart). A transfer comes after what stands before its
// start, and before what stands behind a wait for it or for a later one; transfers come one after the
// other. That is the happens-before of vector clocks, whose two entries per rank are here a position and
// a number of finished transfers (Lamport 1978). Between ranks collectives give the order: one that is
// done has read all that it reads of any rank.
//
// Followed are two micro-batches of two steps and then every eval section, from nothing on its way: what
// is different later would have to differ there.
#pragma once

#include <cstdint>

#include "framework/base/status.h"
#include "framework/ir/graph.h"
#include "framework/passes/plan_memory.h"

namespace zg {

struct RaceProof {
  int64_t accesses = 0;   // that were compared with transfers on their way
  int64_t transfers = 0;  // that were started ahead
};

// Errors, each with the nodes and bytes: an access beside a transfer that writes what it touches, or
// reads what it writes; a wait for what was never started; a transfer that nobody waits for.
StatusOr<RaceProof> CheckRaces(const ir::Graph& graph, const MemoryPlan& plan);

}  // namespace zg
