// Sums in parts: a rank that holds several parts of a dim that an op sums over, such as the inner dim
// of a product, sums each part by itself and then adds the sums pairwise. Ranks that hold one part
// each get the same bits from a sum over ranks in the same order (Mesh: tensor=2/4). infer-sbp asks
// for it.
#pragma once

#include <cstdint>

#include "framework/ir/op_def.h"

namespace zg {

// Equal parts of dim `dim` of input 0, in f32. If the dim consists of several equal groups, each part has
// its share of every group, one after the other.
struct SummedParts {
  int64_t count = 1;  // a power of two
  int dim = 0;
  int64_t groups = 1;

  static SummedParts Of(const ir::OpCall& call);  // one, unless the call says otherwise
  friend bool operator==(const SummedParts& a, const SummedParts& b) {
    return a.count == b.count && a.dim == b.dim && a.groups == b.groups;
  }
};

// The op with an attribute for such parts.
ir::OpDef WithSummedParts(ir::OpDef op);
bool CanSumInParts(const ir::OpDef& op);
void SetSummedParts(const SummedParts& parts, ir::Attributes* attributes);

}  // namespace zg
