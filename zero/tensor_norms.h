// tensor-norms: gives updates that use norms of whole tensors (ops/normed_update.cc) these norms,
// although a rank has only a part of the bucket.
//
// Requires: bucketing and infer-sbp have run, the shard passes of the stage, and clip-gradients; no
// collectives are inserted yet.
//
// Ensures: every normed_update reads the square sums of its bucket's tensors, computed from the
// update's own inputs, and the offset at which the rank's part begins. The sums are exact integers,
// so neither the stage nor the number of ranks nor the bucket size changes a bit.
//
// Before:
//   update:
//     %p.next: f32[64] {S(0)}, ... = normed_update %p.shard, %g.shard, %m, %v (norms=[0,9], ...)
// After:
//   update:
//     %p.begins: i64[2] = iota (size=2, step=32)
//     %p.begins.shard: i64[2] {S(0)} = place %p.begins (sbp="{S(0)}")
//     %p.square_sums: i64[3,2,21] {P} = tensor_square_sums %p.shard, %g.shard, %m, %v, %p.begins.shard
//     %p.next: f32[64] {S(0)}, ... = normed_update %p.shard, %g.shard, %m, %v, %p.square_sums, ...
//
// No-op without such updates, or when it ran already.
#pragma once

#include "framework/passes/pass.h"

namespace zg::zero {

class TensorNorms : public Pass {
 public:
  std::string_view name() const override { return "tensor-norms"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg::zero
