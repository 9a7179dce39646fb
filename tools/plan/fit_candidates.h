// FitCandidates: the ways of training a model with so many samples per step on so many ranks that a
// search for what fits looks at: meshes, stages by name, recomputation and micro-batches, of which
// the command line may have fixed some.
#pragma once

#include <vector>

#include "tools/plan/plan_options.h"

namespace zg::plan {

// Resolved options like `options`, whose batch times micro-batches is the samples of a step. Meshes:
// all data ranks on one axis; hosts along data and the ranks of one along shard; copies along replica;
// and where there are rules for it, each of these beside an axis tensor inside a host.
std::vector<PlanOptions> FitCandidates(const PlanOptions& options);

}  // namespace zg::plan
