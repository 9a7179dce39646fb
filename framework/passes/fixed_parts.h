// What infer-sbp does for mesh axes with fixed parts (ir/mesh.h: tensor=2/4), so that a rank with
// several parts has the bits of several ranks with one part each.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/graph.h"

namespace zg {

// Whether an operand tells which parts of its values the node computes (kernels/parted_dim.h). Each
// element of its result is then of one part alone.
bool KnowsItsPart(const ir::Node& node);

// Sums a pending sum before the node computes with it: a sum of scaled terms has other bits than a
// scaled sum.
Status SumBeforeUse(ir::Graph& graph, ir::Node* node);

// Makes a node with several parts of a dim sum each part by itself, and add these sums like ranks
// (`summed_parts`, ops/summed_parts.h). Error: an op that cannot.
Status SumInParts(const ir::Graph& graph, ir::Node* node);

}  // namespace zg
