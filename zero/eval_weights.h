// eval-weights: makes eval programs read the weights that the optimizer's rule gives for
// evaluation, such as a moving average, instead of the trained ones.
//
// Requires: bucketing has run; no placements yet.
//
// Ensures: where an update has an `eval_program`, every eval section computes its weights from the
// bucket's parameters and states once, before the first view, and the views read these. If the
// model is in 16 bits, the weights are rounded.
//
// Before:
//   update:
//     %n, %a = elementwise_update %bucket0, %bucket0.grad, %bucket0.ema (..., eval_program="...")
//   eval "validate":
//     %w = bucket_view %bucket0 (...)
// After:
//   eval "validate":
//     %bucket0.eval = fused_elementwise %bucket0, %bucket0.ema (program="...")
//     %w = bucket_view %bucket0.eval (...)
//
// No-op without such updates.
#pragma once

#include "framework/passes/pass.h"

namespace zg::zero {

class EvalWeights : public Pass {
 public:
  std::string_view name() const override { return "eval-weights"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg::zero
