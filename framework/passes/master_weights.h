// master-weights: keeps parameters in 16 bits if the model reads them only in 16 bits. The
// optimizer updates an f32 master copy, which counts as optimizer state, and gradients stay in 16
// bits. That is 2 + 2 + 12 bytes per parameter with Adam (arXiv 1910.02054, section 3.1).
//
// Requires: mixed-precision, build-backward and append-update have run; before bucketing.
//
// Ensures: only the update section reads the master. The 16-bit copy is a variable of its own, the
// parameter, which is assigned at the end of the update. Its stored tensor is a copy of the
// master's.
//
// Before:
//   variables:
//     %w: f32[5,2000] = variable ()
//   forward:
//     %w.bf16 = cast %w (dtype="bf16")
//     %y = linear %x, %w.bf16
//   backward:
//     %w.bf16.grad = linear_grad_weight %y.grad, %x
//     %w.grad = cast %w.bf16.grad (dtype="f32")
//   update:
//     %w.next, ... = adam_update %w, %w.grad, ...
//     assign %w, %w.next
// After:
//   variables:
//     %w: f32[5,2000] = variable (role="master")
//     %w.bf16: bf16[5,2000] = variable ()
//   forward:
//     %y = linear %x, %w.bf16
//   backward:
//     %w.bf16.grad = linear_grad_weight %y.grad, %x
//   update:
//     %w.next, ... = adam_update %w, %w.bf16.grad, ...
//     %w.bf16.next = cast %w.next (dtype="bf16")
//     assign %w.bf16, %w.bf16.next
//     assign %w, %w.next
//
// No-op on a graph in f32.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class MasterWeights : public Pass {
 public:
  std::string_view name() const override { return "master-weights"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
