// match-phases: gives the program of one phase (Graph::train) what those of the other phases have of its
// parameters: a gradient, which is zeros here, and 16-bit copies. All phases then lay parameters and
// their states out alike; drop-idle-updates removes the updates that zeros would make.
//
// Requires: build-backward has run.
//
// Ensures: every parameter of `trained` has a gradient, and the gradients are marked in the order of the
// variables. Every parameter of `sixteen_bit` that the program does not read is cast to `dtype`, and so
// is its gradient.
//
// Before (trained="v,w"):
//   backward:
//     %w.grad = linear_grad_weight %y.grad, %x
//     parameter_gradient %w, %w.grad
// After:
//   backward:
//     %w.grad = linear_grad_weight %y.grad, %x
//     %zero = constant (value=0.0)
//     %v.zeros = expand %zero (dims=[0], sizes=[8])
//     parameter_gradient %v, %v.zeros
//     parameter_gradient %w, %w.grad
//
// Errors: a name that no parameter has, or no trainable one.
// No-op where the program has all of them.
#pragma once

#include <set>
#include <string>

#include "framework/passes/pass.h"
#include "framework/tensor/dtype.h"

namespace zg {

// Names of parameters.
struct NeedsOfPhases {
  std::set<std::string> trained;      // in at least one phase
  std::set<std::string> sixteen_bit;  // of which some phases read 16-bit copies alone
  DType dtype = DType::kBF16;
};

class MatchPhases : public Pass {
 public:
  explicit MatchPhases(NeedsOfPhases needs) : needs_(std::move(needs)) {}
  std::string_view name() const override { return "match-phases"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;

 private:
  NeedsOfPhases needs_;
};

}  // namespace zg
