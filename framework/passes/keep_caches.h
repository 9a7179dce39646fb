// keep-caches: gives storage to the values that eval programs leave to later runs, and shares it by
// name: the keys and values of attention, to which every run adds those of new tokens, and states,
// which every run reads and replaces.
//
// Requires: types are final (mixed-precision), so that a cache has the type of its rows; no
// placements yet.
//
// Ensures: no `cached_rows` is left in eval sections. Each becomes a `write_rows` into a `cache`,
// which is a variable that checkpoints do not name. So does each `keep_rows`, and the `left_rows` of
// its name become `read_rows`, which copy the cache before it is written. Where texts go on from
// others, a third input, `move_texts` comes first. If rows differ from
// micro-batch to micro-batch, every rank has the cache of its own texts (S(0)); otherwise all have
// the same (B).
//
// Before:
//   eval "prefill":
//     %keys: f32[1,128,64] = cached_rows %k, %start (name="keys", size=128)
//   eval "decode":
//     %keys.1: f32[1,128,64] = cached_rows %k.1, %start.1 (name="keys", size=128)
//     %h: f32[1,1,16] = left_rows %x, %start.1 (channels=16, name="h")
//     %kept: f32[1,1,16] = keep_rows %next, %zero (name="h")
// After:
//   variables:
//     %keys.cache: f32[1,128,64] = cache
//     %h.cache: f32[1,1,16] = cache
//   eval "prefill":
//     %keys: f32[1,128,64] = write_rows %keys.cache, %k, %start
//   eval "decode":
//     %keys.1: f32[1,128,64] = write_rows %keys.cache, %k.1, %start.1
//     %h.left: f32[1,1,16] = read_rows %h.cache, %start.1
//     %h: f32[1,1,16] = write_rows %h.cache, %next, %zero
//
// Errors: programs whose caches of one name differ; a program that has one cache twice; a cache of
// the training program; one that is read and not kept. No-op without caches.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class KeepCaches : public Pass {
 public:
  std::string_view name() const override { return "keep-caches"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
