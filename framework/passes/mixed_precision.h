// mixed-precision: lets the model compute in bf16 or f16. Parameters and inputs are cast once per
// section, and products, norms and most other ops that read one of them compute in 16 bits (their kernels
// sum, normalise and take exponentials in f32); losses are f32 numbers of 16-bit values. As with PyTorch's
// autocast, some ops compute in f32 (OpTraits::computes_in_f32: exponentials, powers, softmax, sums), and
// ops that combine their results, or the program's f32 inputs, with others do, too (promotes_types:
// elementwise ops, comparisons, where, concat), so that losses made of small ops are f32 numbers as well,
// and targets are not rounded; ops that move elements leave inputs f32 (keeps_dtype). Products, norms and
// the rest bring them back to 16 bits. Modules that `f32_modules` names compute in f32: they read 16-bit
// values through casts, and their parameters directly.
//
// Requires: forward and eval sections as traced; before build-backward, so that a gradient has the
// type of its value.
//
// Ensures: variables and inputs are unchanged; every op reads floating-point operands of one type,
// except the f32 targets of losses; outputs are f32. Types of values are inferred again.
//
// Before:
//   forward:
//     %y = linear %x, %w
//     %loss = mse_loss %y, %t (divisor=8.0)
// After (bf16):
//   forward:
//     %x.bf16 = cast %x (dtype="bf16")
//     %w.bf16 = cast %w (dtype="bf16")
//     %y = linear %x.bf16, %w.bf16
//     %loss = mse_loss %y, %t (divisor=8.0)
//
// Errors: a pattern that names no module of a forward or eval section.
// No-op when it ran already.
#pragma once

#include <utility>
#include <vector>

#include "framework/ir/scope_pattern.h"
#include "framework/passes/pass.h"
#include "framework/tensor/dtype.h"

namespace zg {

class MixedPrecision : public Pass {
 public:
  // To bf16 or f16.
  explicit MixedPrecision(DType dtype, std::vector<ScopePattern> f32_modules = {})
      : dtype_(dtype), f32_modules_(std::move(f32_modules)) {}

  std::string_view name() const override { return "mixed-precision"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;

 private:
  DType dtype_;
  std::vector<ScopePattern> f32_modules_;
};

}  // namespace zg
