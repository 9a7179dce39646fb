// drop-custom-gradients: removes custom_gradient nodes, which are not needed once backward is
// built.
//
// Requires: build-backward has run, or the graph does not train.
//
// Ensures: no custom_gradient is left; its users read y itself. The nodes that compute its custom
// gradient are dead, unless something else reads them.
//
// Before:
//   forward:
//     %y = sign %x
//     %dx = clamp_gradient %dy, %x
//     %z = custom_gradient %y, %dy, %x, %dx
//     %loss = mse_loss %z, %t
// After:
//   forward:
//     %y = sign %x
//     %dx = clamp_gradient %dy, %x
//     %loss = mse_loss %y, %t
//
// No-op without such nodes.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class DropCustomGradients : public Pass {
 public:
  std::string_view name() const override { return "drop-custom-gradients"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
