// What ops share whose call may have only some of the equal parts of a dim: its last operand is then
// `part`, the parts' indices (kernels/parted_dim.h).
#pragma once

#include <cstdint>
#include <string>

#include "framework/ir/op_def.h"
#include "framework/ir/parts_context.h"
#include "framework/ops/op_rules.h"

namespace zg {

// Replaces the node, unless its operand number `part` is there, by its op with the rank's parts.
void ComputeOwnParts(ir::PartsContext& context, size_t part);

// The size of a result's dim of which `attribute` is the size in all parts. Error: it does not divide;
// operand `part` does not fit.
StatusOr<int64_t> SizeOfOwnParts(const ir::OpCall& call, const InputNames& names, size_t part,
                                 const std::string& attribute);

// The reverse for a node whose operand has `own` of the dim.
int64_t SizeOfAllParts(const ir::Node& node, size_t part, int64_t own);

}  // namespace zg
