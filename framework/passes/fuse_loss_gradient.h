// fuse-loss-gradient: a cross entropy and its gradient become one node, which reads the logits once and
// may write their gradient in their place. Logits are the largest values of most language models.
//
// Requires: nothing; runs after insert-collectives, when placements are final and a loss of logits that
// lie split by classes is no such node any more, and before fuse-elementwise, in whose chains a factor of
// the loss would vanish.
//
// Ensures: a `softmax_cross_entropy` of forward and the `softmax_cross_entropy_grad` of its own logits,
// targets and sums are a `softmax_cross_entropy_with_grad` in the loss's place, where what the gradient
// is multiplied by, the gradient of the loss, follows from constants, variables and what comes before the
// loss: its nodes move to forward, too. Values keep their names.
//
// Before:
//   forward:
//     %loss, %log_sum_exp = softmax_cross_entropy %logits, %targets (divisor=16.0)
//   backward:
//     %loss_seed = constant (value=1.0)
//     %logits.grad = softmax_cross_entropy_grad %loss_seed, %logits, %targets, %log_sum_exp (divisor=16.0)
// After:
//   forward:
//     %loss_seed = constant (value=1.0)
//     %loss, %logits.grad = softmax_cross_entropy_with_grad %loss_seed, %logits, %targets (divisor=16.0)
//
// No-op where something else reads the sums, or the logits later: both they and their gradient would then
// be in memory at once. Likewise where recompute has copied the logits, where the loss is not linear in
// the cross entropy, and where the gradient of the loss is a sum over ranks which is still to come.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class FuseLossGradient : public Pass {
 public:
  std::string_view name() const override { return "fuse-loss-gradient"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
