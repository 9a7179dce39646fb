// Differentiate: reverse-mode differentiation with the gradient rules of ops.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/builder.h"

namespace zg::ir {

// Returns `sources` and the values that `nodes`, in execution order, compute from them in floating
// point: the values whose gradients are worth computing.
std::unordered_set<const Value*> DependingOn(const std::vector<Node*>& nodes,
                                             std::unordered_set<const Value*> sources);

// A value to differentiate, and the gradient of the loss for it.
struct Seed {
  const Value* y = nullptr;
  Value* gradient = nullptr;
};

// Walks `nodes`, which are in execution order, backwards from the seeds' values, and appends the
// nodes that compute the gradients of the values in `needed`. The n gradients of a value that is
// used n times are added in the reverse order of the uses, except where an op adds up those of its
// own nodes (GradientSum), at the first of these. Returns the gradients that were found, by value.
// Error: an op without a gradient on the way.
StatusOr<std::unordered_map<const Value*, Value*>> Differentiate(
    Builder* builder, const std::vector<Node*>& nodes, const std::vector<Seed>& seeds,
    const std::unordered_set<const Value*>& needed);

}  // namespace zg::ir
