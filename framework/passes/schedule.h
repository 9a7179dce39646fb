// schedule: fixes the order of execution. Nodes keep their order, except those that only hold
// memory until they are needed: inputs, constants, views and gathers move down to right before
// their first user. The results of an eval section move to its end, so that their memory is not
// reused until the program has run.
//
// Requires: insert-collectives has run. The order is the same on every rank, so collectives match.
//
// Ensures: every `input`, `constant`, `bucket_view`, `local_slice` and `all_gather` is right before
// its first user in its section, after others of its kind with the same first user. After an
// `output` of an eval section there are only other outputs.
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
// No-op when they are there already.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class Schedule : public Pass {
 public:
  std::string_view name() const override { return "schedule"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;
};

}  // namespace zg
