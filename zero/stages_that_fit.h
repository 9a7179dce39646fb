// The needs of other ZeRO stages, for the error about a program that does not fit.
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/status.h"
#include "framework/passes/program.h"
#include "zero/compile.h"

namespace zg::zero {

// Compiles the graph for the program's mesh at the stages above its own. Returns exact needs, such
// as "stage 2 needs 1.5 GB (1512304640 bytes), which would fit", or advice if no stage fits, or "" if
// the program itself fits into `available_bytes` per rank. A program that fits without overlap is
// told that instead.
std::string StagesThatFit(const Graph& graph, const Program& program, const Target& target,
                          int64_t available_bytes);

// The error that the program does not fit, with that as its hint.
Status WithStagesThatFit(const Status& error, const Graph& graph, const Program& program,
                         const Target& target, int64_t available_bytes);

}  // namespace zg::zero
