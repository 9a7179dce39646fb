// accumulate-gradients: sums the gradients of a step's micro-batches.
//
// Requires: bucketing and infer-sbp have run, and no collectives are inserted yet.
//
// Ensures: when a rank computes more than one micro-batch per step, every gradient bucket is folded
// into an accumulator on its owner, in micro-batch order: ((g0 + g1) + g2) + .... The accumulator
// is sharded at every stage. The fold does not depend on the number of ranks, so the same
// micro-batches give the same bits on any number of them. On several ranks the fold runs at the end
// of backward, where the full-size gradients are still whole; on one rank it runs right after the
// gradient. Sums are in f32; for a 16-bit gradient the update reads the rounded sum, as it does
// after a plain reduction. With reduce_once_per_step every rank instead folds its own gradients,
// right after they are packed, into a full-size accumulator with placement P. The update reads that
// accumulator, so the sum over the ranks happens there. The bits then do not depend on the stage,
// but on the number of ranks.
//
// Before:
//   update:
//     %n = sgd_update %bucket0, %bucket0.grad
// After:
//   variables:
//     %bucket0.grad.sum: f32[64] {S(0)} = variable (role="gradient")
//   backward:
//     %a: f32[64] {S(0)} = accumulate %bucket0.grad.sum, %bucket0.grad
//     assign %bucket0.grad.sum, %a
//   update:
//     %n = sgd_update %bucket0, %bucket0.grad.sum
//
// After, reduce_once_per_step:
//   variables:
//     %bucket0.grad.sum: f32[64] {P} = variable (role="gradient")
//   backward:
//     %bucket0.grad: f32[64] {P} = bucket_pack ...
//     %a: f32[64] {P} = accumulate %bucket0.grad.sum, %bucket0.grad
//     assign %bucket0.grad.sum, %a
//   update:
//     %n = sgd_update %bucket0, %bucket0.grad.sum
//
// No-op when every rank computes one micro-batch per step.
#pragma once

#include "framework/passes/pass.h"

namespace zg::zero {

struct AccumulateGradientsOptions {
  bool reduce_once_per_step = false;
};

class AccumulateGradients : public Pass {
 public:
  explicit AccumulateGradients(AccumulateGradientsOptions options = {}) : options_(options) {}
  std::string_view name() const override { return "accumulate-gradients"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;

 private:
  AccumulateGradientsOptions options_;
};

}  // namespace zg::zero
