// schedule: settles the order of execution. Nodes keep their order but for those that only hold
// memory until they are needed: inputs, constants, views and gathers move down to right before
// their first user. The results of an eval section go to its end, so that their memory is theirs
// until the program has run.
//
// Requires: insert-collectives has run. The order is the same on every rank, so collectives match.
//
// Ensures: every `input`, `constant`, `bucket_view`, `local_slice` and `all_gather` stands right
// before its first user in its section, behind others of its kind that have the same first user.
// Behind an `output` of an eval section there are only others.
//
// Before:
//   %w: f32[4] = all_gather %p
//   %a: f32[4] = relu %x
//   %b: f32[4] = add %a, %w
// After:
//   %a: f32[4] = relu %x
//   %w: f32[4] = all_gather %p
//   %b: f32[4] = add %a, %w
//
// No-op when they stand there already.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class Schedule : public Pass {
 public:
  std::string_view name() const override { return "schedule"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
