// Compares the measurements of a run with its plan, as GoogleTest expectations: equal, to the byte.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "framework/comm/communicator.h"
#include "framework/passes/predict_traffic.h"
#include "framework/runtime/executor.h"

namespace zg::testing {

// Every category of memory, and the peak.
void ExpectMemoryAsPlanned(const Executor& executor);

// Every collective's count and bytes in so many steps.
void ExpectTraffic(const std::map<std::string, PredictedTraffic>& of_step, int64_t steps,
                   const TrafficCounters& measured);

// The same for everything that a rank has sent.
void ExpectTrafficAsPlanned(const Executor& executor, int64_t steps);

}  // namespace zg::testing
