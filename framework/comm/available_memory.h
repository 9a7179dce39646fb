// How much memory this host or container still has, asked before an arena is allocated: otherwise
// the first sign of too little would be a killed rank in the middle of a step.
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/status.h"

namespace zg {

struct AvailableMemory {
  int64_t bytes = 0;
  std::string limited_by;  // "MemAvailable in /proc/meminfo", or the cgroup's limit
};

// The least of the system's MemAvailable and what the memory cgroups (v1 and v2) of this process
// leave. `root` is put before every path (tests).
StatusOr<AvailableMemory> ReadAvailableMemory(const std::string& root = "");

// The error when `num_ranks` arenas of `arena_bytes` on this host need more than there is.
Status CheckMemoryFor(int64_t arena_bytes, int num_ranks, const AvailableMemory& available);

}  // namespace zg
