// eval-weights: makes eval programs read the weights that the optimizer's rule gives for
// evaluation, such as a moving average, instead of the trained ones. `other_weights` reads the others:
// in training those for evaluation, in eval programs those that are trained.
//
// Requires: bucketing has run; no placements yet. Runs once: eval programs would read averages where
// they had asked for the trained weights.
//
// Ensures: no `other_weights` is left. A section that reads weights for evaluation computes them from
// the bucket's parameters and states once, before the first view of them, and these views read that. If
// the model is in 16 bits, the weights are rounded. Of parameters that are not trained, or whose
// update has no `eval_program`, eval programs read both as what they are.
//
// Before:
//   forward:
//     %w = bucket_view %bucket0 (...)
//     %teacher = other_weights %w
//   update:
//     %n, %a = elementwise_update %bucket0, %bucket0.grad, %bucket0.ema (..., eval_program="...")
//   eval "validate":
//     %w.1 = bucket_view %bucket0 (...)
// After:
//   forward:
//     %w = bucket_view %bucket0 (...)
//     %bucket0.eval = fused_elementwise %bucket0, %bucket0.ema (program="...")
//     %teacher = bucket_view %bucket0.eval (...)
//   eval "validate":
//     %bucket0.eval.1 = fused_elementwise %bucket0, %bucket0.ema (program="...")
//     %w.1 = bucket_view %bucket0.eval.1 (...)
//
// Errors: training reads the weights for evaluation of a parameter whose update has no `eval_program`.
// No-op without such updates and reads.
#pragma once

#include "framework/passes/pass.h"

namespace zg::zero {

class EvalWeights : public Pass {
 public:
  std::string_view name() const override { return "eval-weights"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg::zero
