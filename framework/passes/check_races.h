// CheckRaces: proves for a planned program that any two accesses to the same bytes, of which one is
// a write, are ordered. A rank has two queues: the computation, in program order, and the
// transfers, in the order in which they are started (ir::IsStart). A transfer comes after
// everything before its start, and before everything after a wait for it or for a later transfer;
// transfers run one after the other. This is the happens-before relation of vector clocks, whose
// two entries per rank are a position and a number of finished transfers (Lamport 1978). Between
// ranks the collectives give the order: a finished collective has read all of its inputs on every
// rank.
//
// The proof simulates two micro-batches of two steps and then every eval section, starting with no
// transfer in flight: any later difference would already appear there.
#pragma once

#include <cstdint>

#include "framework/base/status.h"
#include "framework/ir/graph.h"
#include "framework/passes/plan_memory.h"

namespace zg {

struct RaceProof {
  int64_t accesses = 0;   // compared with transfers in flight
  int64_t transfers = 0;  // started ahead
  double ms = 0;          // time that the proof took
};

// Errors, each with the nodes and bytes: an access that touches bytes which a transfer in flight
// writes, or that writes bytes which it reads; a wait for a transfer that was never started; a
// transfer that nobody waits for.
StatusOr<RaceProof> CheckRaces(const ir::Graph& graph, const MemoryPlan& plan);

}  // namespace zg
