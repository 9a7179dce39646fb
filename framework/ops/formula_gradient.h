// Gradients of ops whose kernels compute at once what can also be written as a formula of
// differentiable ops: of ops that are gradients themselves, for second derivatives.
#pragma once

#include <functional>
#include <vector>

#include "framework/ir/builder.h"
#include "framework/ops/terms.h"

namespace zg {

// The outputs of a node in the order of its own, written with ops that have gradients. `inputs` are
// the node's, floating-point ones converted to f32; outputs are f32.
using Formula =
    std::function<std::vector<Term>(const std::vector<Term>& inputs, const ir::Node& node)>;

// A gradient rule that writes the formula out and differentiates it. Each input counts as
// independent of the others: a statistic that an earlier node computed from another input gets a
// gradient of its own.
std::function<Status(ir::GradientContext&)> GradientOf(Formula formula);

// Adds an f32 term to the gradient of input `i`, which may not be set yet.
void AddToInputGradient(ir::GradientContext& context, int i, Term term);

}  // namespace zg
