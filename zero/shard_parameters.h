// shard-parameters: ZeRO stage 3 (arXiv 1910.02054, section 5.3). Parameters stay split; every
// section gathers a bucket when it first needs it and drops it after the last use.
//
// Requires: shard-gradients has run.
//
// Ensures: parameter buckets are S(0). Each use window (forward, backward, every eval section)
// reads a bucket through a `place` of its own, counted as communication. The updated shard is
// assigned as it is.
//
// Before:
//   %p: f32[64] {B} = variable
//   forward:
//     %w = bucket_view %p (...)
//   update:
//     %p.shard: f32[64] {S(0)} = place %p (sbp="{S(0)}")
//     %n = sgd_update %p.shard, %g
//     %n.whole: f32[64] {B} = place %n (sbp="{B}")
//     assign %p, %n.whole
// After:
//   %p: f32[64] {S(0)} = variable
//   forward:
//     %p.whole: f32[64] {B} = place %p (sbp="{B}")
//     %w = bucket_view %p.whole (...)
//   update:
//     %n = sgd_update %p, %g
//     assign %p, %n
//
// Errors: updates that shard-optimizer-state has not sharded.
// No-op on one rank, and for buckets marked replicated.
#pragma once

#include "framework/passes/pass.h"

namespace zg::zero {

class ShardParameters : public Pass {
 public:
  std::string_view name() const override { return "shard-parameters"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg::zero
