// fuse-gelu: merges a linear layer and the gelu after it into one node, whose kernel computes the
// gelu in the product's epilogue where it can; likewise a product and the gelu_grad that it feeds.
//
// Requires: nothing; runs after insert-collectives, when placements are final, and before
// fuse-elementwise, which would put the gelu into a chain.
//
// Ensures: a `linear` whose result a gelu or a gelu_grad of its section reads becomes a
// `linear_gelu`, whose outputs are the gelu and that result. If only a gelu_grad reads it, it is
// recompute's copy of such a pair. The copy is fused like its original, because another kernel
// could round differently. A `linear_grad_input` that only a gelu_grad of its section reads becomes
// a `linear_grad_input_gelu` in the gelu_grad's place. Types and placements of product and gelu are
// equal; partial sums are left alone, and so are products that add something else. Values keep
// their names.
//
// Before:
//   forward:
//     %h = linear %x, %w, %b
//     %y = gelu %h
//   backward:
//     %y.grad = linear_grad_input %z.grad, %v
//     %h.grad = gelu_grad %y.grad, %h
// After:
//   forward:
//     %y, %h = linear_gelu %x, %w, %b
//   backward:
//     %h.grad = linear_grad_input_gelu %z.grad, %v, %h
//
// No-op when no linear layer is connected to a gelu.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class FuseGelu : public Pass {
 public:
  std::string_view name() const override { return "fuse-gelu"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
