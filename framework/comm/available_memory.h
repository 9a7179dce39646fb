// The memory that this host or container still has, checked before an arena is allocated: otherwise
// the first sign of too little memory would be a killed rank in the middle of a step.
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/status.h"

namespace zg {

struct AvailableMemory {
  int64_t bytes = 0;
  std::string limited_by;  // "MemAvailable in /proc/meminfo", or the cgroup's limit
};

// The minimum of the system's MemAvailable and the remaining memory of this process's cgroups (v1
// and v2). `root` is put before every path (tests).
StatusOr<AvailableMemory> ReadAvailableMemory(const std::string& root = "");

// The error if `num_ranks` arenas of `arena_bytes` on this host need more than is available.
Status CheckMemoryFor(int64_t arena_bytes, int num_ranks, const AvailableMemory& available);

}  // namespace zg
