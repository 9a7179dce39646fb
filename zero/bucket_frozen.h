// bucket-frozen: lays parameters that no update changes end to end in flat buckets, as bucketing
// does with trained ones, so that stage 3 can shard them. If the model reads a bucket in 16 bits,
// every section makes its own 16-bit copy, and no copy is kept from forward to backward.
//
// Requires: choose-stages has run; no placements yet.
//
// Ensures: every such parameter is in a bucket, in the order of the variables. All parameters of a
// bucket are read in the same dtype and have one stage and one split. Bucket sizes are those of
// bucketing, except that a bucket that is not sharded ends with its last tensor.
//
// Before:
//   variables:
//     %w: f32[4,8] = variable (trainable=false)
//   forward:
//     %w.bf16: bf16[4,8] = cast %w (dtype="bf16")
//     %y = linear %x, %w.bf16
//   backward:
//     %x.grad = linear_grad_input %y.grad, %w.bf16
// After:
//   variables:
//     %frozen0: f32[32] = variable (trainable=false)
//       tensor "w" f32[4,8] at 0
//   forward:
//     %frozen0.bf16: bf16[32] = cast %frozen0 (dtype="bf16")
//     %w.bf16 = bucket_view %frozen0.bf16 (offset=0, shape=[4,8])
//     %y = linear %x, %w.bf16
//   backward:
//     %frozen0.bf16_1: bf16[32] = cast %frozen0 (dtype="bf16")
//     %w.bf16_1 = bucket_view %frozen0.bf16_1 (offset=0, shape=[4,8])
//     %x.grad = linear_grad_input %y.grad, %w.bf16_1
//
// Parameters that only other phases read (match-phases) are laid out as those read them.
//
// No-op where all parameters are updated.
#pragma once

#include <cstdint>
#include <utility>

#include "framework/passes/match_phases.h"
#include "framework/passes/pass.h"

namespace zg::zero {

class BucketFrozen : public Pass {
 public:
  // bucket_bytes counts the bytes that are read; tensors of fewer than `shard_min_elements` have
  // stage 0.
  BucketFrozen(int64_t bucket_bytes, int64_t shard_min_elements, NeedsOfPhases needs = {})
      : bucket_bytes_(bucket_bytes),
        shard_min_elements_(shard_min_elements),
        needs_(std::move(needs)) {}
  std::string_view name() const override { return "bucket-frozen"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;

 private:
  int64_t bucket_bytes_;
  int64_t shard_min_elements_;
  NeedsOfPhases needs_;
};

}  // namespace zg::zero
