#include "framework/passes/boxing.h"

namespace zg {

Boxing FindBoxing(Sbp from, Sbp to, int64_t logical_bytes, int num_ranks) {
  const double total = static_cast<double>(logical_bytes);
  const double others = static_cast<double>(num_ranks - 1) / num_ranks;
  const auto dim = [](Sbp split) { return int64_t{split.dim()}; };
  if (from == to) return {};
  if (from.is_partial()) {
    if (to.is_broadcast()) return {"all_reduce", {}, 2 * total * others};
    return {"reduce_scatter", {{"dim", dim(to)}}, total * others};
  }
  if (from.is_split()) {
    if (to.is_broadcast()) return {"all_gather", {{"dim", dim(from)}}, total * others};
    if (to.is_split())
      return {"all_to_all", {{"from", dim(from)}, {"to", dim(to)}}, total / num_ranks * others};
    return {"local_term", {{"dim", dim(from)}}, 0};
  }
  if (to.is_split()) return {"local_slice", {{"dim", dim(to)}}, 0};
  return {"local_term", {{"dim", int64_t{-1}}}, 0};
}

}  // namespace zg
