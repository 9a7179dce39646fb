// ReplaceRules: other hyperparameters for the updates of a program that is compiled already.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/graph.h"
#include "framework/optim/update_rules.h"

namespace zg::optim {

// Error: rules that differ in more than hyperparameters: ops, states or groups.
Status CheckSameStates(const UpdateRules& before, const UpdateRules& after);

// The update nodes whose attributes change, with the new ones; the graph stays as it is. Requires
// CheckSameStates. None if compiling made something else of a changed rule than attributes of its
// update, such as norms of tensors that are computed apart: then the model has to be compiled again.
std::optional<std::vector<std::pair<ir::Node*, ir::Attributes>>> ReplaceRules(
    const ir::Graph& graph, const UpdateRules& before, const UpdateRules& after);

}  // namespace zg::optim
