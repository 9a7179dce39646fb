// VerifyCollectives: the rules of Verify (verifier.h) that hold once the collectives are inserted:
// the operands of every node have the placements that one of its op's signatures wants, and started
// transfers are waited for.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/graph.h"

namespace zg::ir {

Status VerifyCollectives(const Graph& graph);

}  // namespace zg::ir
