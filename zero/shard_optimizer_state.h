// shard-optimizer-state: ZeRO stage 1 (arXiv 1910.02054, section 5.1). Every rank keeps and updates
// a part of the optimizer state.
//
// Requires: bucketing and infer-sbp have run, and no collectives are inserted yet.
//
// Ensures: state buckets are S(0) over the data axis. An update node reads the rank's part of
// parameter and gradient, and its new parameter is placed back to B.
//
// Before:
//   %m: f32[64] {B} = variable
//   update:
//     %n, %k = sgd_momentum_update %p, %g, %m
//     assign %p, %n
//     assign %m, %k
// After:
//   %m: f32[64] {S(0)} = variable
//   update:
//     %p.shard: f32[64] {S(0)} = place %p (sbp="{S(0)}")
//     %g.shard: f32[64] {S(0)} = place %g (sbp="{S(0)}")
//     %n, %k = sgd_momentum_update %p.shard, %g.shard, %m
//     %n.whole: f32[64] {B} = place %n (sbp="{B}")
//     assign %p, %n.whole
//     assign %m, %k
//
// Row and column statistics (ops/factored_update.cc) stay whole. No-op on one rank, and for buckets
// of stage 0.
#pragma once

#include "framework/passes/pass.h"

namespace zg::zero {

class ShardOptimizerState : public Pass {
 public:
  std::string_view name() const override { return "shard-optimizer-state"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg::zero
