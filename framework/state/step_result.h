// Results that a step returns beside its loss (Graph::train).
#pragma once

#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/executor.h"

namespace zg {

// This rank's part of a result of the last step: the values of its micro-batches, one after the
// other. A value of the whole step, such as the mean of a scalar, is whole on every rank. Errors:
// no such result; it is not f32.
StatusOr<std::vector<float>> ReadLocalStepResult(const Executor& executor, std::string_view result);

// The values of all micro-batches of the last step, in their order, on rank `to`. The other ranks
// get an empty vector, or also the result if every rank holds it whole. Every rank must call this.
StatusOr<std::vector<float>> GatherStepResult(const Executor& executor, std::string_view result,
                                              int to);

}  // namespace zg
