// shard-gradients: ZeRO stage 2 (arXiv 1910.02054, section 5.2). A gradient bucket is reduced to
// its owner as soon as backward completes it; the full-size bucket lives only until then.
//
// Requires: shard-optimizer-state has run.
//
// Ensures: the placement of every gradient bucket to S(0), or its accumulation, comes right after
// the bucket is packed; the shard counts as gradients, the full-size bucket as communication.
//
// Before:
//   backward:
//     %g: f32[64] {P} = bucket_pack ...
//     ... (the rest of backward)
//   update:
//     %g.shard: f32[64] {S(0)} = place %g (sbp="{S(0)}")
// After:
//   backward:
//     %g: f32[64] {P} = bucket_pack ... (in_flight=true)
//     %g.shard: f32[64] {S(0)} = place %g (sbp="{S(0)}")
//     ... (the rest of backward)
//
// No-op on one rank, for buckets of a lower stage, and where accumulate-gradients reduces once per
// step, because full-size accumulators stay.
#pragma once

#include "framework/passes/pass.h"

namespace zg::zero {

class ShardGradients : public Pass {
 public:
  std::string_view name() const override { return "shard-gradients"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg::zero
