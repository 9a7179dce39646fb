// The text that a run prints before and after its steps: the configuration, and memory and traffic,
// both predicted by the compiler and measured.
#pragma once

#include <string>
#include <vector>

#include "framework/job/report.h"

namespace zg {

// One flag per line; flags with an empty value are left out.
std::string ConfigurationTable(const std::vector<ResolvedFlag>& config);

// One line per category and the peak of rank 0. Equal numbers are marked "=", others with the
// difference in bytes.
std::string MemoryTable(const MemoryUse& predicted, const MemoryUse& measured);

// One line per collective that is predicted or was called; per step, sent by one rank.
std::string TrafficTable(const TrafficCounters& predicted, const TrafficCounters& measured);

// Everything for the end of a run: loss, speed, memory, traffic, and the profile if one was
// measured.
std::string Summary(const Report& report);

}  // namespace zg
