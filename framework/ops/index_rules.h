// Checks and placements of ops with an index of positions along a dim: indexing.cc, scatter.cc.
#pragma once

#include <vector>

#include "framework/base/status.h"
#include "framework/ir/op_def.h"
#include "framework/ops/op_rules.h"

namespace zg {

// Whether an index may have another number of elements along the attribute `dim` than input 0.
enum class IndexSize { kAny, kSame };

// Error unless `dim` is one of input 0's, and input 1 is an i64 index of its shape, except for that
// dim where `size` says so.
Status CheckIndex(const ir::OpCall& call, const InputNames& names, IndexSize size);

// Two operands and the result split along each dim other than the attribute `dim`.
std::vector<ir::SbpSignature> OtherDimsSplit(const ir::OpCall& call);

}  // namespace zg
