// VerifyCollectives: the rules of Verify (verifier.h) that hold once the collectives are inserted:
// every node has operands where one of its op's signatures wants them, and transfers that were
// started are waited for.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/graph.h"

namespace zg::ir {

Status VerifyCollectives(const Graph& graph);

}  // namespace zg::ir
