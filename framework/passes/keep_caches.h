// keep-caches: gives storage to the values that eval programs leave to later runs, and shares it by
// name. These are the keys and values of attention: every run adds those of new tokens.
//
// Requires: types are final (mixed-precision), so that a cache has the type of its rows; no
// placements yet.
//
// Ensures: no `cached_rows` is left in eval sections. Each becomes a `write_rows` into a `cache`,
// which is a variable that checkpoints do not name. If rows differ from micro-batch to micro-batch,
// every rank has the cache of its own texts (S(0)); otherwise all have the same (B).
//
// Before:
//   eval "prefill":
//     %keys: f32[1,128,64] = cached_rows %k, %start (name="keys", size=128)
//   eval "decode":
//     %keys.1: f32[1,128,64] = cached_rows %k.1, %start.1 (name="keys", size=128)
// After:
//   variables:
//     %keys.cache: f32[1,128,64] = cache
//   eval "prefill":
//     %keys: f32[1,128,64] = write_rows %keys.cache, %k, %start
//   eval "decode":
//     %keys.1: f32[1,128,64] = write_rows %keys.cache, %k.1, %start.1
//
// Errors: programs whose caches of one name differ; a program that has one cache twice; a cache of
// the training program. No-op without caches.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class KeepCaches : public Pass {
 public:
  std::string_view name() const override { return "keep-caches"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
