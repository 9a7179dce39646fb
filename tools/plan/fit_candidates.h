// FitCandidates: the candidates of a search for settings that fit: ways of training a model with a
// given number of samples per step on a given number of ranks. They vary meshes, stages by name,
// recomputation and micro-batches, unless the command line fixes them.
#pragma once

#include <vector>

#include "tools/plan/plan_options.h"

namespace zg::plan {

// Resolved options like `options`, in which batch times micro-batches gives the samples of a step.
// Meshes: all data ranks on one axis; hosts along data and the ranks of a host along shard; copies
// along replica; and if there are rules for it, each of these combined with an axis tensor inside a
// host.
std::vector<PlanOptions> FitCandidates(const PlanOptions& options);

}  // namespace zg::plan
