// Runs one collective with its own inputs, and compares its results bit by bit with the expected
// ones, and every other byte of the arena with its previous value. Every rank must call it.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"

namespace zg {

// `part`: elements per rank, f32. With `accumulate` the fold starts from the value of the output.
Status TestReduceScatter(Communicator& communicator, int64_t part, bool in_place, bool accumulate);
Status TestAllReduce(Communicator& communicator, int64_t elements, bool in_place, bool accumulate);
Status TestPairwiseSums(Communicator& communicator, int64_t part);
Status TestAllGather(Communicator& communicator, int64_t part, bool in_place);
Status TestAllToAll(Communicator& communicator, int64_t part);

// A reduce-scatter into an output and an all-reduce in place, of i64.
Status TestWholeNumbers(Communicator& communicator, int64_t part, bool accumulate);
// Reductions of bf16 and f16, to 16 bits and to f32, and their traffic.
Status TestHalves(Communicator& communicator, int64_t part);
// All collectives of a group, on parts of 1000 elements: `ranks` is any order of ranks.
Status TestGroup(Communicator& communicator, const std::vector<int>& ranks);

}  // namespace zg
