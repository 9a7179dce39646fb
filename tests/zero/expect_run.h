// What tests of training expect of runs, as GoogleTest expectations.
#pragma once

#include "tests/zero/training.h"

namespace zg::testing {

RunResult TrainOrDie(const RunConfig& config);  // an error is a failure of the test

void ExpectSameBits(const RunResult& a, const RunResult& b);  // losses, norms, digests

// Every category of memory, the peak, and every collective's count and bytes.
void ExpectPlanIsMeasured(const RunResult& result, int steps);

}  // namespace zg::testing
