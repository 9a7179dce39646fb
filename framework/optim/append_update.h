// append-update: turns every `parameter_gradient` into the optimizer's update of that parameter.
//
// Requires: build-backward has run.
//
// Ensures: no `parameter_gradient` is left; the update section has one update node per parameter,
// reading the parameter, its gradient and its state, and assigning the new values to the same
// variables. State tensors are named after the parameter: "w.exp_avg" and "w.exp_avg_sq" (Adam),
// "w.momentum_buffer" (SGD); "w.row_var" and "w.col_var" (Adafactor) have one number per row or
// column. Updates of a parameter group have the group's number.
//
// Before:
//   backward:
//     parameter_gradient %w, %w.grad
// After:
//   update:
//     %w.next, %w.next.1 = sgd_momentum_update %w, %w.grad, %w.momentum_buffer (lr=0.1, ...)
//     assign %w, %w.next
//     assign %w.momentum_buffer, %w.next.1
//
// No-op on a graph without `parameter_gradient`.
#pragma once

#include "framework/optim/update_rules.h"
#include "framework/passes/pass.h"

namespace zg::optim {

class AppendUpdate : public Pass {
 public:
  explicit AppendUpdate(UpdateRules rules) : rules_(std::move(rules)) {}

  std::string_view name() const override { return "append-update"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;

 private:
  UpdateRules rules_;
};

}  // namespace zg::optim
