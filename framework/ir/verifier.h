// Verify: checks whether a graph is well formed. It runs after every pass (passes/pass_manager.h),
// so an error names the pass that broke a rule, the node, what it has and what was expected:
// `forward: linear %y: got type f32[8,4], expected f32[8,3]`.
//
// The rules:
//   names       every value and stored tensor has a name of its own
//   order       a node reads values of earlier nodes: of its section or of one that runs before
//               (variables < forward < backward < update); an eval section reads variables and
//               itself
//   links       producers, users and sections point at each other
//   types       attributes are those of the op; outputs have the types that its shape rule gives
//   placements  no value has one, or every value has one per mesh axis; split dims exist and divide
//   variables   `variable` nodes, and no others, are in the variables section
//   tensors     every stored tensor lies inside its variable, and no two overlap
//   collectives once they are inserted: along every mesh axis a node's operands have the placements
//               of one of the op's signatures, or are all B; no `place` is left
#pragma once

#include "framework/base/status.h"
#include "framework/ir/graph.h"

namespace zg::ir {

struct VerifyOptions {
  bool collectives_inserted = false;
};

Status Verify(const Graph& graph, VerifyOptions options = {});

}  // namespace zg::ir
