// build-backward: appends the gradient of the loss for every parameter, by the gradient rules of
// the ops.
//
// Requires: the forward section has one `output (name="loss")` of an f32 scalar: the mean over one
// micro-batch, or its sum together with an `output (name="loss_weight")`.
//
// Ensures: the backward section computes, for every trainable parameter that the loss depends on,
// its gradient of loss / micro_batches, marked by `parameter_gradient`. The n gradients of a value
// that is used n times are added in the reverse order of the uses, except where an op adds up those
// of its own nodes (ir::GradientSum): slices side by side, and small products with one weight. The
// loss of the step, the mean over its micro-batches, is accumulated in a variable and becomes an
// output of the update section. The weight is treated the same way, and the mean of sums is divided
// by it; clip-gradients divides the gradients.
//
// Before:
//   forward:
//     %y = linear %x, %w
//     %loss = mse_loss %y, %t (divisor=8.0)
//     output %loss (name="loss")
// After:
//   forward:
//     %y = linear %x, %w
//     %loss = mse_loss %y, %t (divisor=8.0)
//     %loss_sum_1 = accumulate %loss_sum, %loss
//     assign %loss_sum, %loss_sum_1
//   backward:
//     %loss_seed = constant (value=1.0)
//     %y.grad = mse_loss_grad %loss_seed, %y, %t (divisor=8.0)
//     %w.grad = linear_grad_weight %y.grad, %x
//     parameter_gradient %w, %w.grad
//   update:
//     %mean_loss = scale %loss_sum (factor=1.0)
//     output %mean_loss (name="loss")
//
// Errors: no loss; a loss or weight that is not an f32 scalar; a loss that depends on no trainable
// parameter, or a weight that does; an op without gradient on the way from a parameter to the loss.
// No-op: never; a graph without a loss does not train.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class BuildBackward : public Pass {
 public:
  std::string_view name() const override { return "build-backward"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
