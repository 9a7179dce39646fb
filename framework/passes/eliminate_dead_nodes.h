// eliminate-dead-nodes: removes nodes whose results nobody reads.
//
// Requires: nothing.
// Ensures: every node has a side effect (`output`, `assign`), or has an output that some node
//   reads, or is a variable that stores a tensor. Parameters and optimizer state stay even when
//   unused: they are part of checkpoints. Inputs of the graph that nobody reads go; so do unread
//   variables without tensors.
//
//   variables:                                variables:
//     %w: f32[4] = variable                     %w: f32[4] = variable
//       tensor "w" f32[4] at 0 init zeros         tensor "w" f32[4] at 0 init zeros
//   forward:                            ->    forward:
//     %x: f32[4] = input (name="x")             %x: f32[4] = input (name="x")
//     %y: f32[4] = relu %x                      output %x (name="loss")
//     output %x (name="loss")
//
// No-op when every node is alive.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class EliminateDeadNodes : public Pass {
 public:
  std::string_view name() const override { return "eliminate-dead-nodes"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
