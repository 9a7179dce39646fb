// SaveMemory: host memory for the copy of a checkpoint, so that training can go on while a thread
// writes it. Allocated once, and resident from then on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "framework/base/status.h"
#include "framework/comm/available_memory.h"
#include "framework/comm/communicator.h"

namespace zg {

struct SaveMemory {
  std::unique_ptr<std::byte[]> data;
  int64_t bytes = 0;
  int64_t most_bytes = 0;  // of any rank
};

// Every rank must call this with its own need. Error, on every rank: there is too little memory.
StatusOr<SaveMemory> AllocateSaveMemory(Communicator& communicator, int64_t bytes);

// The error if the ranks of a host need `host_bytes` in all and there is less.
Status CheckSaveMemory(int64_t host_bytes, const AvailableMemory& available);

}  // namespace zg
