// scale-loss: dynamic loss scaling for f16 (ops/loss_scaling.h): backward begins with 2^k times the
// usual gradient of the loss. clip-gradients handles the scale in the update.
//
// Requires: build-backward has run.
//
// Ensures: the state of the loss scaler is a variable and a stored tensor, "loss_scaler"; the first
// node of backward reads it.
//
// Before:
//   backward:
//     %loss_seed = constant (value=0.5)
// After:
//   variables:
//     %loss_scaler: f32[4] = variable (role="control")
//   backward:
//     %scaled_loss_seed = loss_seed %loss_scaler (value=0.5)
//
// No-op on a graph without backward, or when it ran already.
#pragma once

#include "framework/passes/control_tensors.h"
#include "framework/passes/pass.h"

namespace zg {

class ScaleLoss : public Pass {
 public:
  std::string_view name() const override { return "scale-loss"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
