// NodesOfGroups: the part of a training step that updates the parameters of some groups alone
// (optim/update_rules.h): what the step's outputs, its buffers and these updates need. The other
// parameters keep their values and states, and what only their gradients need is left out.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_set>

#include "framework/ir/graph.h"

namespace zg {

// Whether a variable holds nothing from one step to the next: it is written for its readers.
bool HoldsForOneStep(const ir::Value& variable);

// In forward, backward and update of a compiled graph. `groups` are values of the attribute `group` of
// its updates.
std::unordered_set<const ir::Node*> NodesOfGroups(const ir::Graph& graph,
                                                  const std::set<int64_t>& groups);

}  // namespace zg
