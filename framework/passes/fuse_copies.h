// fuse-copies: turns the cast of an updated parameter to 16 bits into one more output of the
// update, which already holds the parameter. This saves a read of the new master, 4 bytes an
// element.
//
// Requires: nothing; runs after insert-collectives, when placements are final.
//
// Ensures: where a `cast` of the same section reads the new parameter of an update that can copy it
// (framework/ops/parameter_copy.h) to a 16-bit type, with equal placements, the update computes the
// cast. If there are several types, the first is fused. Values keep their names.
//
// Before:
//   update:
//     %w.next, %m.next = sgd_momentum_update %w, %g, %m
//     %w.bf16.next = cast %w.next (dtype="bf16")
// After:
//   update:
//     %w.next, %m.next, %w.bf16.next = sgd_momentum_update %w, %g, %m (copy_dtype="bf16")
//
// No-op when no updated parameter is cast, such as on a graph in f32.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class FuseCopies : public Pass {
 public:
  std::string_view name() const override { return "fuse-copies"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
