// CheckUnambiguous: infer-sbp does not decide for the user between two ways to split a result that cost
// the same.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/graph.h"

namespace zg {

// Error if, along an axis whose ranks share micro-batches, the signatures that change the least
// (ir::BestSignatures) split results or inputs in different ways. Names the node, the axis and the
// choices. Other ties do not matter: a sum that is pending in one operand or in another. Requires
// placements of the node's inputs.
Status CheckUnambiguous(const ir::Graph& graph, const ir::Node& node);

}  // namespace zg
