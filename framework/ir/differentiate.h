// Differentiate: reverse-mode differentiation by the gradient rules of ops.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/builder.h"

namespace zg::ir {

// The values that `nodes`, in execution order, compute in floating point from `sources`, and
// `sources` themselves: those for which a gradient is worth computing.
std::unordered_set<const Value*> DependingOn(const std::vector<Node*>& nodes,
                                             std::unordered_set<const Value*> sources);

// Walks `nodes`, which are in execution order, backwards from `y`, whose gradient is `seed`, and
// appends the nodes that compute the gradients of the values in `needed`. A value that is used n
// times gets its n gradients added in the reverse order of the uses. Returns the gradients that were
// found, by value. Error: an op without gradient on the way.
StatusOr<std::unordered_map<const Value*, Value*>> Differentiate(
    Builder* builder, const std::vector<Node*>& nodes, const Value* y, Value* seed,
    const std::unordered_set<const Value*>& needed);

}  // namespace zg::ir
