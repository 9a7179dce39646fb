// round-weights: keeps the parameters that no update changes in 16 bits, if the model reads them only
// in 16 bits. They take half the memory, and no run casts them again. Run for graphs that do not train;
// in others, where what is frozen can be unfrozen, on request (CompileOptions::round_frozen).
//
// Requires: mixed-precision and, in a graph that trains, master-weights have run; before bucketing.
//
// Ensures: such a parameter has the dtype in which it is read. Its name and initializer stay.
//
// Before:
//   variables:
//     %w: f32[5,2000] = variable ()
//   eval "predict":
//     %w.bf16 = cast %w (dtype="bf16")
//     %y = linear %x, %w.bf16
// After:
//   variables:
//     %w: bf16[5,2000] = variable (dtype="bf16")
//   eval "predict":
//     %y = linear %x, %w
//
// No-op on a graph in f32.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class RoundWeights : public Pass {
 public:
  std::string_view name() const override { return "round-weights"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
