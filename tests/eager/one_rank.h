// The device that a test of eager execution compares a graph on: the CPU (one_rank_cpu.cc), or an
// emulated GPU (tests/cuda_emulation).
#pragma once

#include <functional>
#include <vector>

#include "framework/base/status.h"
#include "framework/comm/communicator.h"

namespace zg::testing {

// Calls `run` as the only rank of a job on the device.
Status OnOneRank(const std::function<Status(Communicator&)>& run);

int GpuOfOneRank();                      // EagerOptions::gpu
const std::vector<int>& ThreadCounts();  // numbers of threads that it may compute with

// Whether the device's kernel for the gradient of a norm sums that of the bias before it in an order
// of its own, so that a graph, which uses it so, has other last bits.
bool NormsSumBiasesDifferently();

}  // namespace zg::testing
