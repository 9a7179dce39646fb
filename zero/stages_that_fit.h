// The needs of other ZeRO stages, for the error about a stage that does not fit.
#pragma once

#include <cstdint>
#include <string>

#include "framework/passes/program.h"
#include "zero/compile.h"

namespace zg::zero {

// Compiles the graph for the program's mesh at the stages above its own. Returns exact needs, such
// as "stage 2 needs 1,512,304,640 bytes per rank, which fits", or advice if no stage fits, or "" if
// the program itself fits into `available_bytes` per rank.
std::string StagesThatFit(const Graph& graph, const Program& program, const Target& target,
                          int64_t available_bytes);

}  // namespace zg::zero
