// clip-gradients: scales all gradients so that their global norm is at most max_norm, as
// torch.nn.utils.clip_grad_norm_ does, and divides them by the weight of a step's loss.
//
// Requires: bucketing and infer-sbp have run, and the shard passes of the stage; no collectives are
// inserted yet.
//
// Ensures: before the first update of a step, the square sum of every gradient bucket is computed
// where the bucket is placed: on the shards, or on the whole bucket if every rank holds it, in
// which case it counts once. Each rank adds up its partial sums before they are sent. One
// update_control turns them into a control, which every update node reads, and the norm, which is
// an output of the program. Square sums are exact integers, so neither the stage nor the number of
// ranks nor the bucket size changes a bit. A gradient that is a pending sum gets one `place` that
// both readers share. With a loss scaler (scale-loss), a scaled_update_control divides the
// gradients by the scale, skips steps whose norm is not finite and computes the next state. With
// skip_non_finite and without a scaler, a guarded_update_control skips steps whose norm or loss is
// not finite; its state is a variable and a stored tensor, "update_counter". If the step has a
// loss_weight (build-backward), it is an input of the control; without a limit and a scaler no norm
// is computed for it.
//
// Before:
//   update:
//     %p.shard: f32[64] {S(0)} = place %p (sbp="{S(0)}")
//     %g.shard: f32[64] {S(0)} = place %g (sbp="{S(0)}")
//     %n: f32[64] {S(0)} = sgd_update %p.shard, %g.shard
// After:
//   update:
//     %p.shard: f32[64] {S(0)} = place %p (sbp="{S(0)}")
//     %g.shard: f32[64] {S(0)} = place %g (sbp="{S(0)}")
//     %g.square_sum: i64[21] {P} = square_sum %g.shard
//     %control: f32[2] {B}, %grad_norm: f32[] {B} = update_control %g.square_sum (max_norm=1.0)
//     output %grad_norm (name="grad_norm")
//     %n: f32[64] {S(0)} = sgd_update %p.shard, %g.shard, %control
//
// Errors: shards that cut a block of 16 elements, which bucketing never makes.
// No-op on a graph without update nodes, or whose updates have a control, or where there is no
// limit, no weight, no scaler and nothing to skip.
#pragma once

#include "framework/passes/control_tensors.h"
#include "framework/passes/pass.h"

namespace zg::zero {

class ClipGradients : public Pass {
 public:
  // max_norm 0: only the weight, the loss scaler or skip_non_finite apply.
  explicit ClipGradients(double max_norm, bool skip_non_finite = false)
      : max_norm_(max_norm), skip_non_finite_(skip_non_finite) {}
  std::string_view name() const override { return "clip-gradients"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;

 private:
  double max_norm_;
  bool skip_non_finite_;
};

}  // namespace zg::zero
