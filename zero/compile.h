// Compile: turns a traced graph into the program of every rank.
//
//   Graph graph("classifier");
//   graph.train(...);
//   for (int ranks : {1, 2, 3, 4}) {
//     ZG_ASSIGN_OR_RETURN(Program program, Compile(graph, Mesh::DataParallel(ranks),
//                                                  graph.config(), target));
//     program.memory.arena_bytes, program.traffic, program.graph ...
//   }
//
// Compile is a function: the graph is a description and stays unchanged; equal arguments give equal
// programs.
#pragma once

#include <optional>

#include "framework/base/status.h"
#include "framework/ir/mesh.h"
#include "framework/nn/graph.h"
#include "framework/optim/update_rules.h"
#include "framework/passes/compile_options.h"
#include "framework/passes/program.h"
#include "zero/phases.h"

namespace zg::zero {

// Runs the passes of pipeline.h on a copy of the graph's IR, then plans memory. Errors: those of
// building the model and of the options (CompileOptions::Resolve), a graph without programs, a node
// that the target has no kernel for, more memory than options.max_memory_bytes (with the exact needs
// of the stages that fit).
StatusOr<Program> Compile(const Graph& graph, const Mesh& mesh, const CompileOptions& options,
                          const Target& target);

// The part of Compile that starts from `program->graph`, a traced graph with its mesh and
// micro-batches, and from the resolved `program->options`. `update` is set if the graph trains,
// `phase` if it is one of several phases.
Status CompileTraced(const std::optional<optim::UpdateRules>& update, const Target& target,
                     Program* program, const PhaseOptions* phase = nullptr);

}  // namespace zg::zero
