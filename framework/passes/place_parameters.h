// place-parameters: splits parameters along mesh axes whose ranks compute one micro-batch together,
// as the user's rules say (CompileOptions::placement). Optimizer states and 16-bit copies are split
// alike. infer-sbp derives the placements of the values computed from them.
//
// Requires: append-update and master-weights have run, if the graph is trained; no buckets, no
// placements.
//
// Ensures: the variables that a rule names have the attribute `split`, and their stored tensors are
// split so. A rule of a layer leaves the matrices of its LoRA alone (nn/lora.h): unless rules name them,
// they lie as the layer's weight along the dim that they share with it.
//
// Before, on mesh(data=2, tensor=2), with the rule "mlp.up: tensor=S(0)":
//   %mlp.up.weight: f32[64,16] = variable
//     tensor "mlp.up.weight" f32[64,16] at 0
// After:
//   %mlp.up.weight: f32[64,16] = variable (split="{B,S(0)}")
//     tensor "mlp.up.weight" f32[64,16] {B,S(0)} at 0
//
// Errors: an axis that the mesh lacks, or along which ZeRO shards; a pattern that names no
// parameter; two rules that contradict each other about one parameter; a dim that the parameter
// lacks or that the axis does not divide; an axis of several ranks along which nothing is split, or
// that comes before a data axis; an optimizer that needs a split parameter as a whole.
// No-op without rules on a mesh of data axes.
#pragma once

#include <vector>

#include "framework/passes/pass.h"
#include "framework/passes/placement_rule.h"

namespace zg {

class PlaceParameters : public Pass {
 public:
  explicit PlaceParameters(std::vector<PlacementRule> rules) : rules_(std::move(rules)) {}
  std::string_view name() const override { return "place-parameters"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;

 private:
  std::vector<PlacementRule> rules_;
};

}  // namespace zg
