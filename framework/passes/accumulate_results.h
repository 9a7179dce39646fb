// accumulate-results: averages over the micro-batches of a step the results that training returns
// beside its loss, and the next values of its buffers.
//
// Requires: build-backward has run; no placements yet.
//
// Ensures: no `next_value` is left. An f32 scalar that training returns and that differs from
// micro-batch to micro-batch is summed over the step, and the update section returns its mean. The
// next value of a buffer is averaged the same way and then assigned. A next value that is the same
// for all micro-batches is assigned as it is. With `keep_finite` a buffer keeps those elements
// whose next value would be infinite or NaN, because updates are skipped then, too. Several next values
// of one buffer count as their mean. Other results stay in the forward section and are returned for
// every micro-batch.
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
