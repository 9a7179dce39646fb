// fuse-additions: merges an addition into the node that computes one of its operands, such as the
// product before a residual connection. It also merges a sum over rows, such as the gradient of a
// bias, into the node whose result it sums. This saves one more read of the operand and of the
// result.
//
// Requires: nothing; runs after insert-collectives, when placements are final, after fuse-gelu,
// whose products add nothing, and before fuse-elementwise, which would put the addition into a
// chain.
//
// Ensures: if the operand of an `add` that is computed last comes from an op that takes an addend
// (OpTraits::takes_addend), and nothing else reads it, the op's node computes the sum, in the place
// of the `add`. If a `linear_grad_bias` of the same section reads the first result of an op that
// sums rows (OpTraits::sums_rows), that node has the sum as one more output. Types and placements
// are equal: nothing is broadcast. Values keep their names.
//
// Before:
//   forward:
//     %h = linear %y, %w, %b
//     %x.1 = add %x, %h
//   backward:
//     %n.grad, %g.grad, %s.grad = layer_norm_grad %m.grad, %x, %g, %mean, %rstd
//     %x.grad = add %x.1.grad, %n.grad
//     %c.grad = linear_grad_bias %x.grad
// After:
//   forward:
//     %x.1 = linear %y, %w, %b, %x (adds=true)
//   backward:
//     %x.grad, %g.grad, %s.grad, %c.grad =
//         layer_norm_grad %m.grad, %x, %g, %mean, %rstd, %x.1.grad (adds=true, sums=true)
//
// No-op when no such op computes an operand.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class FuseAdditions : public Pass {
 public:
  std::string_view name() const override { return "fuse-additions"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
