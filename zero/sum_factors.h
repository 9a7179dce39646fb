// sum-factors: gives factored updates (ops/factored_update.cc) the sums over whole matrices that
// they need, although a rank has only a part of the bucket.
//
// Requires: bucketing and infer-sbp have run, the shard passes of the stage, and clip-gradients; no
// collectives are inserted yet.
//
// Ensures: every factored_update reads the square sums of its bucket's tensors and of their
// gradients; the gradients' square sums by rows and columns, which are counted in a unit derived
// from the former; and the square sums of the step, which need those of rows and columns. All of
// them are integers, so neither the stage nor the number of ranks nor the bucket size changes a
// bit. Each is summed over the ranks once.
//
// Before:
//   update:
//     %p.next: f32[64] {S(0)}, ... = factored_update %p.shard, %g.shard, %r, %c (matrices=[0,1,8,8])
// After:
//   update:
//     %p.begins: i64[2] = iota (size=2, step=32)
//     %p.begins.shard: i64[2] {S(0)} = place %p.begins (sbp="{S(0)}")
//     %p.norms: i64[1,2,21] {P} = tensor_square_sums %p.shard, %g.shard, %p.begins.shard
//     %p.norms.whole: i64[1,2,21] {B} = place %p.norms (sbp="{B}")
//     %p.factor_sums: i64[2,16] {P} = factor_sums %g.shard, %p.norms.whole, %p.begins.shard
//     %p.factor_sums.whole: i64[2,16] {B} = place %p.factor_sums (sbp="{B}")
//     %p.step_sums: i64[1,1,21] {P} = factored_step_sums %g.shard, %r, %c, %p.norms.whole, ...
//     %p.next: f32[64] {S(0)}, ... = factored_update %p.shard, %g.shard, %r, %c, %p.norms.whole, ...
//
// No-op without such updates, or when it ran already.
#pragma once

#include "framework/passes/pass.h"

namespace zg::zero {

class SumFactors : public Pass {
 public:
  std::string_view name() const override { return "sum-factors"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg::zero
