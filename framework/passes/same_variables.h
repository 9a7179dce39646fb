// CheckSameVariables: whether programs can run in one arena, one after the other, on the same
// parameters, optimizer state and buffers.
#pragma once

#include "framework/base/status.h"
#include "framework/passes/program.h"

namespace zg {

// Both are compiled for the same mesh and target. Error: a stored tensor, or memory that outlives a
// step, that differs or has another place in the arena.
Status CheckSameVariables(const Program& program, const Program& other);

}  // namespace zg
