// infer-sbp: gives every value a placement along every mesh axis, and turns the shapes of one
// micro-batch into the logical shapes over all ranks.
//
// Requires: no value has a placement. Data inputs and caches carry their `placement` along the axis
// "data".
//
// Ensures: every value has a placement. Variables other than caches have the placement in their
// attribute `split`, else B; along other axes a cache is placed like the first rows that are
// written into it. A node takes the legal signature (OpDef::sbp_signatures, or all-B) that changes
// the placement of the fewest inputs, and among those the one that moves the fewest bytes. A split
// value's logical dim is the ranks' parts together. On an axis of one part everything is B.
//
// Along the axes of data ranks nothing is moved: a node computes all micro-batches side by side if
// its op can (S). Otherwise each rank computes its own (P, ir::MicroBatchSignature) from views of
// its parts (own_part), and draws its own random numbers. A user's result that is P, or split along
// another dim than 0, is returned side by side (joined_parts).
//
// Before, on mesh(data=2):
//   %x: f32[8,4] = input (placement="S(0)")
//   %w: f32[3,4] = variable
//   %y: f32[8,3] = linear %x, %w
//   %dw: f32[3,4] = linear_grad_weight %y, %x
// After:
//   %x: f32[16,4] {S(0)} = input (placement="S(0)")
//   %w: f32[3,4] {B} = variable
//   %y: f32[16,3] {S(0)} = linear %x, %w
//   %dw: f32[3,4] {P} = linear_grad_weight %y, %x
//
// Along an axis with fixed parts (Mesh: tensor=2/4) the choice follows from the number of parts, on
// any number of ranks. A rank that sums over several parts of a dim sums each by itself
// (`summed_parts`, ops/summed_parts.h), and a pending sum is summed before an op computes with it.
//
// Errors: an input placement that its shape does not allow; a split parameter that an op cannot
// compute with; a sum over fixed parts by an op that knows none; along an axis whose ranks share
// micro-batches, two ways to split a result that move the same number of bytes. No-op on a graph that
// has placements.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class InferSbp : public Pass {
 public:
  std::string_view name() const override { return "infer-sbp"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
