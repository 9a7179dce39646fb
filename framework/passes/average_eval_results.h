// average-eval-results: makes a scalar result of an eval section the mean over all ranks.
//
// Requires: the graph is traced and the mesh is known; no placements yet.
//
// Ensures: a f32 scalar that was made from one micro-batch (a loss) is divided by the number of
// data ranks before it is returned; the ranks' terms are summed when placements are inferred. Other
// results are the ranks' results side by side and stay as they are.
//
// Before, on 2 ranks:
//   eval "validate":
//     %loss: f32[] = mse_loss %y, %t (divisor=24.0)
//     output %loss (name="result")
// After:
//   eval "validate":
//     %loss: f32[] = mse_loss %y, %t (divisor=24.0)
//     %loss.mean: f32[] = scale %loss (factor=0.5)
//     output %loss.mean (name="result")
//
// No-op on one rank, and without such results. Running it twice would divide twice.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class AverageEvalResults : public Pass {
 public:
  std::string_view name() const override { return "average-eval-results"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
