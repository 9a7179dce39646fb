// bucketing: lays parameters, their gradients and their optimizer state end to end in flat buckets,
// and updates a bucket with one node. A bucket is the unit of every ZeRO collective.
//
// Requires: append-update has run; no placements yet.
//
// Ensures: every updated parameter lies in a bucket, in the order in which backward completes the
// gradients, or in that of BucketOrder::kParameters. Tensors begin at multiples of 64 bytes; a bucket's
// size is a multiple of 64 bytes
// times the data ranks, and its elements divide among all ranks that may have terms of its
// gradient: also those that share micro-batches, unless they have parts of it. A bucket holds
// tensors of one update rule, dtype and stage (choose-stages), up to `bucket_bytes` (a larger tensor
// has a bucket of its own). Tensors below `shard_min_elements` have stage 0. Every section reads
// parameters through `bucket_view`s of its own. Row and column statistics of matrices
// (framework/ops/factored_update.cc) are in variables of their own, without padding, and always have
// stage 0. Tensors that must not be cut, because the update works on whole ones or `partition` says
// so, are laid out by owner (pack_owned.h), unless their stage is 0, where no rank has a part.
// Tensors with 8-bit states (framework/ops/quantised_update.cc), and their parts, begin at multiples
// of a block. Parameters that a mesh axis splits (place-parameters) share a bucket (parts, size)
// that the axis splits along dim 0: part k holds the k-th part of each.
//
// Before:
//   variables:
//     %w: f32[4,8] = variable
//     %b: f32[4] = variable
//   forward:
//     %y = linear %x, %w, %b
//   update:
//     %w.next = sgd_update %w, %w.grad
//     assign %w, %w.next
//     %b.next = sgd_update %b, %b.grad
//     assign %b, %b.next
// After:
//   variables:
//     %bucket0: f32[64] = variable
//       tensor "b" f32[4] at 0
//       tensor "w" f32[4,8] at 16
//   forward:
//     %b = bucket_view %bucket0 (offset=0, shape=[4])
//     %w = bucket_view %bucket0 (offset=16, shape=[4,8])
//     %y = linear %x, %w, %b
//   backward:
//     %bucket0.grad = bucket_pack %b.grad, %w.grad (offsets=[0,16], size=64)
//   update:
//     %bucket0.next = sgd_update %bucket0, %bucket0.grad
//     assign %bucket0, %bucket0.next
//
// No-op on a graph without update nodes, or whose updates are bucketed already.
#pragma once

#include <cstdint>

#include "framework/passes/compile_options.h"
#include "framework/passes/pass.h"

namespace zg::zero {

enum class BucketOrder {
  kGradients,  // in which backward completes the gradients: a bucket is full early
  kParameters,  // the reversed order of the parameters, which programs for inputs of other sizes share
};

struct BucketingOptions {
  int64_t bucket_bytes = int64_t{16} << 20;
  int64_t shard_min_elements = 0;
  Partition partition = Partition::kEven;
  BucketOrder order = BucketOrder::kGradients;
};

class Bucketing : public Pass {
 public:
  explicit Bucketing(BucketingOptions options) : options_(options) {}
  std::string_view name() const override { return "bucketing"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;

 private:
  BucketingOptions options_;
};

}  // namespace zg::zero
