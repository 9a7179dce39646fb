// The memory of this process as the operating system counts it, to compare with the plan.
#pragma once

#include <cstdint>
#include <string_view>

#include "framework/base/status.h"

namespace zg {

struct ProcessMemory {
  int64_t resident_bytes = 0;         // VmRSS
  int64_t peak_resident_bytes = 0;    // VmHWM: the maximum since the start or the last reset
  int64_t shared_resident_bytes = 0;  // RssShmem: the part of resident_bytes in shared memory
};

StatusOr<ProcessMemory> ReadProcessMemory();

// The same from the text of /proc/<pid>/status. Error: a line is missing or not as documented.
StatusOr<ProcessMemory> ParseProcessStatus(std::string_view text);

// Resets the peak to the current resident memory.
Status ResetPeakResidentBytes();

}  // namespace zg
