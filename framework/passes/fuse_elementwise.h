// fuse-elementwise: turns chains of elementwise ops into one node that goes over memory once.
//
// Requires: nothing; runs after insert-collectives so that no collective ends up inside a chain.
//
// Ensures: an elementwise node whose only user is an elementwise node of the same section, type and
// placement is part of that user's `fused_elementwise`. Values that are partial sums are left
// alone.
//
// Before:
//   %a: f32[8] = add %x, %y
//   %b: f32[8] = gelu %a
//   %c: f32[8] = multiply %b, %z
// After:
//   %c: f32[8] = fused_elementwise %x, %y, %z
//                (program="t0=add(i0,i1);t1=gelu(t0);t2=multiply(t1,i2)")
//
// No-op when no elementwise node feeds another.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class FuseElementwise : public Pass {
 public:
  std::string_view name() const override { return "fuse-elementwise"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
