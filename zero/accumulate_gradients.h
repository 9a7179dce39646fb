// accumulate-gradients: sums the gradients of a step's micro-batches on the rank that owns them.
//
// Requires: bucketing and infer-sbp have run, and no collectives are inserted yet.
//
// Ensures: when a rank computes more than one micro-batch per step, every gradient bucket is folded
// into an accumulator, sharded whatever the stage, in micro-batch order: ((g0 + g1) + g2) + ....
// The fold does not know how many ranks there are, so the same micro-batches give the same bits on
// any number of them. On several ranks it stands at the end of backward, where the full-size
// gradients are still whole; on one rank right after the gradient.
//
// Before:
//   update:
//     %n = sgd_update %bucket0, %bucket0.grad
// After:
//   variables:
//     %bucket0.grad.sum: f32[64] {S(0)} @gradients = variable
//   backward:
//     %a: f32[64] {S(0)} @gradients = accumulate %bucket0.grad.sum, %bucket0.grad
//     assign %bucket0.grad.sum, %a
//   update:
//     %n = sgd_update %bucket0, %bucket0.grad.sum
//
// No-op when every rank computes one micro-batch per step.
#pragma once

#include "framework/passes/pass.h"

namespace zg::zero {

class AccumulateGradients : public Pass {
 public:
  std::string_view name() const override { return "accumulate-gradients"; }
  StatusOr<bool> Run(Graph& graph) const override;
};

}  // namespace zg::zero
