// Expectations about training runs, for GoogleTest.
#pragma once

#include <vector>

#include "tests/zero/training.h"

namespace zg::testing {

RunResult TrainOrDie(const RunConfig& config);  // an error fails the test

void ExpectSameBits(const RunResult& a, const RunResult& b);  // losses, norms, digests

// Every category of memory, the peak, every collective's count and bytes, and the bytes along each set of
// mesh axes.
void ExpectPlanIsMeasured(const RunResult& result, int steps);

// A run with `config` at every stage, on each of these numbers of ranks or meshes, has the bits of
// `expected`, and memory and traffic as planned.
void ExpectSameOnRanks(const std::vector<int>& ranks, RunConfig config, const RunResult& expected);
void ExpectSameOnMeshes(const std::vector<std::vector<MeshAxis>>& meshes, RunConfig config,
                        const RunResult& expected);

}  // namespace zg::testing
