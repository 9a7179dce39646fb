// insert-collectives: makes every change of placement explicit.
//
// Requires: infer-sbp has run.
//
// Ensures: no `place` is left, and every node's inputs have the placements of one of its
// signatures. Each mismatch becomes one op of the boxing table (boxing.h) right before the first
// consumer in a section; backward reuses the sums that forward has made. A `place` is replaced by
// the same ops at its position. An `accumulate` of a partial value becomes a collective that folds
// into the accumulator, unless the accumulator is partial as well.
//
// Before, with %p: f32[64] {P} and %w: f32[64] {B}:
//   %s: f32[64] {S(0)} = place %w (sbp="{S(0)}")
//   %u: f32[64] {S(0)} = sgd_update %s, %p
// After:
//   %s: f32[64] {S(0)} = local_slice %w (dim=0)
//   %g: f32[64] {S(0)} = reduce_scatter %p (dim=0)
//   %u: f32[64] {S(0)} = sgd_update %s, %g
//
// A split in groups, S(i:g), is moved as the g slices that its groups are.
//
// Along an axis of one rank nothing is moved, and afterwards all values are B, except variables.
//
// No-op when all placements fit already, as on one rank.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class InsertCollectives : public Pass {
 public:
  std::string_view name() const override { return "insert-collectives"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
