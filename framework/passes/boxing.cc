#include "framework/passes/boxing.h"

#include "framework/ops/op_names.h"

namespace zg {

Boxing FindBoxing(Sbp from, Sbp to, int64_t logical_bytes, int num_ranks) {
  const double total = static_cast<double>(logical_bytes);
  const double others = static_cast<double>(num_ranks - 1) / num_ranks;
  const auto dim = [](Sbp split) { return int64_t{split.dim()}; };
  if (from == to) return {};
  if (from.is_partial()) {
    if (to.is_broadcast()) return {op_names::kAllReduce, {}, 2 * total * others};
    return {op_names::kReduceScatter, {{"dim", dim(to)}}, total * others};
  }
  if (from.is_split()) {
    if (to.is_broadcast()) return {op_names::kAllGather, {{"dim", dim(from)}}, total * others};
    if (to.is_split())
      return {
          op_names::kAllToAll, {{"from", dim(from)}, {"to", dim(to)}}, total / num_ranks * others};
    return {op_names::kLocalTerm, {{"dim", dim(from)}}, 0};
  }
  if (to.is_split()) return {op_names::kLocalSlice, {{"dim", dim(to)}}, 0};
  return {op_names::kLocalTerm, {{"dim", int64_t{-1}}}, 0};
}

}  // namespace zg
