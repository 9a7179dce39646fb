// update-early: updates a bucket as soon as its gradient is complete instead of after backward, so
// that gradients need not all be alive together. Changes no value.
//
// Requires: insert-collectives has run, and every rank computes one micro-batch per step.
//
// Ensures: an update is in backward, with the collectives and slices that only it needs, right
// after its gradient and after the last reader of the values that it overwrites. A node that
// needs several updates or all gradients (a global norm) stays in the update section, and so does
// an update that reads it.
//
// Before:
//   backward:
//     %g: f32[64] = bucket_pack ...
//     ... (the rest of backward)
//   update:
//     %n = sgd_update %p, %g
//     assign %p, %n
// After:
//   backward:
//     %g: f32[64] = bucket_pack ...
//     %n = sgd_update %p, %g
//     assign %p, %n
//     ... (the rest of backward)
//
// No-op when nothing can move. Errors: several micro-batches per rank, because gradients are
// complete only after the last one; a loss with a weight, by which all gradients are divided.
#pragma once

#include "framework/passes/pass.h"

namespace zg::zero {

class UpdateEarly : public Pass {
 public:
  std::string_view name() const override { return "update-early"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg::zero
