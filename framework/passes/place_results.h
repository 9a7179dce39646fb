// place-results: places the results of modules along mesh axes whose ranks share micro-batches, as
// the user's rules say (CompileOptions::placement). infer-sbp derives the placements of the values
// computed from them: if the result of an embedding is split along the sequence, so are the
// residual stream, norms and dropouts (arXiv 2205.05198, section 4.2.2). The activations that
// backward keeps are then divided: ZeRO's partitioned activations (arXiv 1910.02054, section 6.1).
//
// Requires: build-backward has run, if the graph is trained, recompute has not; no placements yet.
//
// Ensures: readers outside of the module, in forward and in backward, read its results through a
// `place` along the axis. Eval programs do the same; where the axis does not divide the dim, as
// when they compute one token at a time, the result is B.
//
// Before, on mesh(data=2, tensor=2), with the rule "embedding -> tensor=S(1)":
//   %x: f32[2,8,4] = embedding %table, %ids  // embedding
//   %y: f32[2,8,4] = relu %x  // block
// After:
//   %x: f32[2,8,4] = embedding %table, %ids  // embedding
//   %x.placed: f32[2,8,4] = place %x (axis="tensor", sbp="{S(1)}")  // embedding
//   %y: f32[2,8,4] = relu %x.placed  // block
//
// Errors: an axis that the mesh lacks, or along which ranks compute different micro-batches; a pattern
// that names no module with floating-point results; a dim that a result lacks or that the axis does not
// divide.
// No-op without such rules, and along axes of one rank.
#pragma once

#include <vector>

#include "framework/passes/pass.h"
#include "framework/passes/placement_rule.h"

namespace zg {

class PlaceResults : public Pass {
 public:
  explicit PlaceResults(std::vector<PlacementRule> rules) : rules_(std::move(rules)) {}
  std::string_view name() const override { return "place-results"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;

 private:
  std::vector<PlacementRule> rules_;
};

}  // namespace zg
