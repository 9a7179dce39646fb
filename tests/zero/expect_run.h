// What tests of training expect of runs, as GoogleTest expectations.
#pragma once

#include <vector>

#include "tests/zero/training.h"

namespace zg::testing {

RunResult TrainOrDie(const RunConfig& config);  // an error is a failure of the test

void ExpectSameBits(const RunResult& a, const RunResult& b);  // losses, norms, digests

// Every category of memory, the peak, and every collective's count and bytes.
void ExpectPlanIsMeasured(const RunResult& result, int steps);

// Both, of runs at every stage on each of these numbers of ranks.
void ExpectSameRuns(const RunResult& expected, RunConfig config, const std::vector<int>& ranks);

// A run with `config` on each of the meshes, at every stage, has the bits of `expected`, and memory and
// traffic as planned.
void ExpectSameBitsOn(const std::vector<std::vector<MeshAxis>>& meshes, RunConfig config,
                      const RunResult& expected);

}  // namespace zg::testing
