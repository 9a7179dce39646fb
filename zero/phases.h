// How the programs of a graph's phases (Graph::train) are compiled, so that all of them keep the same
// variables at the same places.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/nn/graph.h"
#include "framework/optim/update_rules.h"
#include "framework/passes/compile_options.h"
#include "framework/passes/match_phases.h"

namespace zg::zero {

struct PhaseOptions {
  NeedsOfPhases needs;       // of all phases together
  std::set<int64_t> groups;  // the parameter groups that this phase updates
  // Those of the compile options that name modules of this phase.
  std::vector<std::string> recompute, f32_modules;
};

// By phase: of the graph itself, then of its other variants. Errors: options that let groups share one
// count of updates; a pattern that names a module of no phase; a phase that trains some parameters of a
// group, and not others that another phase trains.
StatusOr<std::vector<PhaseOptions>> OptionsOfPhases(const Graph& graph,
                                                    const optim::UpdateRules& rules,
                                                    const CompileOptions& options);

}  // namespace zg::zero
