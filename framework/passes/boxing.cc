#include "framework/passes/boxing.h"

#include "framework/ops/op_names.h"

namespace zg {

Boxing FindBoxing(Sbp from, Sbp to) {
  const auto dim = [](Sbp split) { return int64_t{split.dim()}; };
  if (from == to) return {};
  if (from.is_partial()) {
    if (to.is_broadcast()) return {op_names::kAllReduce, {}};
    return {op_names::kReduceScatter, {{"dim", dim(to)}}};
  }
  if (from.is_split()) {
    if (to.is_broadcast()) return {op_names::kAllGather, {{"dim", dim(from)}}};
    if (to.is_split()) return {op_names::kAllToAll, {{"from", dim(from)}, {"to", dim(to)}}};
    return {op_names::kLocalTerm, {{"dim", dim(from)}}};
  }
  if (to.is_split()) return {op_names::kLocalSlice, {{"dim", dim(to)}}};
  return {op_names::kLocalTerm, {{"dim", int64_t{-1}}}};
}

}  // namespace zg
