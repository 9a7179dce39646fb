// What other ZeRO stages would need where one does not fit, to be told with the error.
#pragma once

#include <cstdint>
#include <string>

#include "framework/passes/program.h"
#include "zero/compile.h"

namespace zg::zero {

// Compiles the graph for the program's mesh at the stages above its own: "stage 2 needs
// 1,512,304,640 bytes per rank, which fits", exactly; what to do when no stage fits; "" when the
// program itself fits into `available_bytes` per rank.
std::string StagesThatFit(const Graph& graph, const Program& program, const Target& target,
                          int64_t available_bytes);

}  // namespace zg::zero
