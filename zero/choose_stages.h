// choose-stages: decides up to which stage ZeRO shards each parameter with its gradient and
// optimizer states. All parameters have one stage, except those that the user's rules name
// (CompileOptions::zero). Bucketing keeps parameters of different stages apart, and the pass of
// each stage works on buckets of its stage and above.
//
// Requires: append-update and master-weights have run; no buckets.
//
// Ensures: the variable that the update of a parameter reads has the attribute `stage`, and so has
// the variable of a parameter that no update changes.
//
// Before, with stages="1,blocks.*=3":
//   %blocks.0.weight: f32[8,8] = variable
//   %norm.weight: f32[8] = variable
// After:
//   %blocks.0.weight: f32[8,8] = variable
//   %norm.weight: f32[8] = variable (stage=1)
//
// Errors: a rule that names no parameter; two that differ about one.
// No-op at stage 3 without rules.
#pragma once

#include <vector>

#include "framework/passes/pass.h"
#include "framework/passes/stage_rule.h"

namespace zg::zero {

class ChooseStages : public Pass {
 public:
  explicit ChooseStages(Stages stages) : stages_(std::move(stages)) {}
  std::string_view name() const override { return "choose-stages"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;

 private:
  Stages stages_;
};

}  // namespace zg::zero
