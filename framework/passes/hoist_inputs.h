// hoist-inputs: computes once what eval programs compute from inputs that stay the same for several of
// their runs, such as keys and values of what an encoder made of another text, while a text is written
// token by token. These inputs name, as their attribute `once`, an eval program that this pass adds: it
// computes those values, and leaves them in caches.
//
// Requires: keep-caches has run; no placements yet.
//
// Ensures: no input has the attribute. Values that depend on inputs with it, on parameters and on
// constants alone, and that products (ops with many flops for an element) lead to, are computed by the
// added program, which is before the programs that read them. It must run before these, with the same
// inputs.
//
// Before:
//   eval "decode":
//     %memory: f32[1,5,8] = input (name="memory", once="inputs", placement="B")
//     %keys: f32[1,5,4] = linear %memory, %w
//     %scores: f32[1,1,5] = matmul %q, %keys (transpose_b=true)
// After:
//   variables:
//     %keys.cache: f32[1,5,4] = cache
//   eval "inputs":
//     %memory: f32[1,5,8] = input (name="memory", placement="B")
//     %keys: f32[1,5,4] = linear %memory, %w
//     %keys.kept: f32[1,5,4] = write_rows %keys.cache, %keys, %zero
//   eval "decode":
//     %scores: f32[1,1,5] = matmul %q, %keys.cache (transpose_b=true)
//
// No-op without such inputs. Programs of one name that do not compute the same values compute all of them
// themselves, as do those with nothing to compute once.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class HoistInputs : public Pass {
 public:
  std::string_view name() const override { return "hoist-inputs"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
