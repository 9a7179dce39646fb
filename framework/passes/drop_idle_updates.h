// drop-idle-updates: removes the updates of parameter groups that the phase of the program does not train
// (Graph::train), and what only they need: gradients, and variables that hold them. Parameters and
// their states stay where they are.
//
// Requires: append-update has run; no collectives are inserted yet. Best after the passes that lay out
// variables, so that the programs of all phases lay them out alike.
//
// Before (groups=[1]):
//   backward:
//     %a.grad = square %x
//     %b.grad = square %y
//   update:
//     %a.next = sgd_update %a, %a.grad
//     assign %a, %a.next
//     %b.next = sgd_update %b, %b.grad (group=1)
//     assign %b, %b.next
// After:
//   backward:
//     %b.grad = square %y
//   update:
//     %b.next = sgd_update %b, %b.grad (group=1)
//     assign %b, %b.next
//
// No-op where all groups are among `groups`.
#pragma once

#include <cstdint>
#include <set>

#include "framework/passes/pass.h"

namespace zg {

class DropIdleUpdates : public Pass {
 public:
  // The groups that are updated: values of the attribute `group` of updates.
  explicit DropIdleUpdates(std::set<int64_t> groups) : groups_(std::move(groups)) {}
  std::string_view name() const override { return "drop-idle-updates"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;

 private:
  std::set<int64_t> groups_;
};

}  // namespace zg
