// The results of an eval section on the host: a rank's own part, or gathered from all ranks.
#pragma once

#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/executor.h"

namespace zg {

// This rank's part of an f32 result of the eval section that ran last. Errors: those of
// Executor::Result; another dtype.
StatusOr<std::vector<float>> ReadLocalResult(const Executor& executor, std::string_view eval,
                                             std::string_view result);

// The whole result, flat, on rank `to`. The other ranks get an empty vector, or also the result if
// every rank holds it whole. Every rank must call this, in the same order. Errors: as above; no
// such rank.
StatusOr<std::vector<float>> GatherResult(const Executor& executor, std::string_view eval,
                                          std::string_view result, int to);

}  // namespace zg
