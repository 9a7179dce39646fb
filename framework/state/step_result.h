// Results that a step hands out beside its loss (Graph::train).
#pragma once

#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/executor.h"

namespace zg {

// This rank's part of a result of the last step: what its micro-batches gave, one after the other.
// What the step has one of, such as the mean of a scalar, is whole on every rank. Errors: no such
// result; it is not f32.
StatusOr<std::vector<float>> ReadLocalStepResult(const Executor& executor, std::string_view result);

// What all micro-batches of the last step gave, in their order, on rank `to`. The other ranks get an
// empty vector, or the result too if every rank holds it whole. Every rank must call this.
StatusOr<std::vector<float>> GatherStepResult(const Executor& executor, std::string_view result,
                                              int to);

}  // namespace zg
