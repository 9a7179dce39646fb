// recompute: activation checkpointing (arXiv 1604.06174). Activations that a module computes in
// forward and reads in backward are recomputed in backward, so that they need not stay in memory in
// between.
//
// Requires: build-backward has run; no placements yet.
//
// Ensures: a segment is a module that one of the patterns names, with everything below it; if
// modules inside each other match, it is the outermost. Values that are made in a segment, and that
// backward reads in the same segment only, are read there from copies of their nodes. The copies
// are right before the first backward node that reads one of them, have the attributes of the
// originals, and start from values that stay alive: those made outside the segment, and those made
// in it that other parts of backward read. Random masks are a function of attributes and step, so
// no bit changes. Nodes with side effects, accumulators, inputs and constants are not copied.
//
// Before, recompute(modules="mlp"):
//   forward:
//     %h = linear %x, %w  // mlp
//     %y = gelu %h  // mlp
//   backward:
//     %h.grad = gelu_grad %y.grad, %h  // mlp
// After:
//   forward:
//     %h = linear %x, %w  // mlp
//     %y = gelu %h  // mlp
//   backward:
//     %h.again = linear %x, %w  // mlp
//     %h.grad = gelu_grad %y.grad, %h.again  // mlp
//
// Errors: a pattern that names no module of the forward pass; placements.
// No-op without patterns, and where backward reads nothing that the segments make.
#pragma once

#include <vector>

#include "framework/ir/scope_pattern.h"
#include "framework/passes/pass.h"

namespace zg {

class Recompute : public Pass {
 public:
  explicit Recompute(std::vector<ScopePattern> modules) : modules_(std::move(modules)) {}
  std::string_view name() const override { return "recompute"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;

 private:
  std::vector<ScopePattern> modules_;
};

}  // namespace zg
