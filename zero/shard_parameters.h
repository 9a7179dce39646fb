// shard-parameters: ZeRO stage 3 (arXiv 1910.02054, section 5.3). Parameters stay split; every
// section gathers a bucket when it first needs it and drops it after the last use.
//
// Requires: shard-gradients has run, and bucket-frozen where parameters are not trained.
//
// Ensures: parameter buckets are S(0), whether they are trained or not. If a section makes a 16-bit
// copy of a bucket that is not trained, it gathers the copy. Each use window (forward, backward,
// every eval section) reads a bucket through a `place` of its own, counted as communication. The
// updated shard is assigned as it is.
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
// With a secondary axis, on a mesh that shards over several axes, backward gathers along that axis
// alone, from the part that the rank has kept of the bucket that forward gathered (hpZ, arXiv
// 2306.10209, section 3.2). After, with the secondary axis shard, on mesh(data=2, shard=2):
//   forward:
//     %p.whole: f32[64] {B,B} = place %p (sbp="{B,B}")
//     %p.part: f32[64] {B,S(0)} = place %p.whole (sbp="{B,S(0)}", copy=true)
//     %w = bucket_view %p.whole (...)
//   backward:
//     %p.whole.1: f32[64] {B,B} = place %p.part (sbp="{B,B}")
//
// Errors: updates that shard-optimizer-state has not sharded; a secondary axis that the mesh lacks,
// or that parameters are not sharded over.
// No-op on one rank, and for buckets of a lower stage.
#pragma once

#include <string>

#include "framework/passes/pass.h"

namespace zg::zero {

class ShardParameters : public Pass {
 public:
  explicit ShardParameters(std::string secondary_axis = "")
      : secondary_axis_(std::move(secondary_axis)) {}
  std::string_view name() const override { return "shard-parameters"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;

 private:
  std::string secondary_axis_;  // empty: none
};

}  // namespace zg::zero
