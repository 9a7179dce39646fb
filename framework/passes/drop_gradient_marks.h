// drop-gradient-marks: removes what tells backward about gradients and computes nothing: custom_gradient
// and stop_gradient.
//
// Requires: build-backward has run, or the graph does not train.
//
// Ensures: neither is left; their users read what they mark. The nodes that compute a custom gradient
// are dead, unless something else reads them.
//
// Before:
//   forward:
//     %y = sign %x
//     %dx = clamp_gradient %dy, %x
//     %z = custom_gradient %y, %dy, %x, %dx
//     %constant = stop_gradient %w
//     %loss = mse_loss %z, %constant
// After:
//   forward:
//     %y = sign %x
//     %dx = clamp_gradient %dy, %x
//     %loss = mse_loss %y, %w
//
// No-op without such nodes.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class DropGradientMarks : public Pass {
 public:
  std::string_view name() const override { return "drop-gradient-marks"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
