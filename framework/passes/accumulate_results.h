// accumulate-results: what a step hands out beside its loss, and what its buffers hold after it, are
// means over its micro-batches.
//
// Requires: build-backward has run; no placements yet.
//
// Ensures: no `next_value` is left. A f32 scalar that training hands out and that differs from
// micro-batch to micro-batch is added up over the step, and its mean handed out by the update
// section; so is the next value of a buffer, which is then assigned. A next value that is the same
// for all micro-batches is assigned as it is. With `keep_finite` a buffer keeps those elements whose
// next value would be infinite or NaN, as updates are left out then, too. Other results stay in the
// forward section: they are handed out for every micro-batch.
//
// Before:
//   forward:
//     %next = add %old, %x.mean
//     next_value %running_mean, %next
// After:
//   forward:
//     %next = add %old, %x.mean
//     %running_mean.sum.1 = accumulate %running_mean.sum, %next
//     assign %running_mean.sum, %running_mean.sum.1
//   update:
//     %running_mean.next = scale %running_mean.sum (factor=0.25)
//     assign %running_mean, %running_mean.next
//
// No-op without such results and buffers. Running it twice is a no-op.
#pragma once

#include "framework/passes/pass.h"

namespace zg {

class AccumulateResults : public Pass {
 public:
  explicit AccumulateResults(bool keep_finite = false) : keep_finite_(keep_finite) {}

  std::string_view name() const override { return "accumulate-results"; }
  StatusOr<bool> Run(ir::Graph& graph) const override;

 private:
  bool keep_finite_;
};

}  // namespace zg
