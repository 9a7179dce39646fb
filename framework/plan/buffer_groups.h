// GroupBuffers: groups buffers of the same kind. A model of 48 equal blocks has 48 buffers of every
// activation, and people want to know the bytes of all of them together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/passes/plan_memory.h"

namespace zg::plan {

struct BufferGroup {
  std::string name;  // of its only buffer, or the common pattern of all names: "blocks.*.mlp.gelu"
  MemoryCategory category = MemoryCategory::kActivations;
  int64_t count = 0;
  int64_t bytes = 0;  // total of all buffers
};

// One group per category and name without the numbers of blocks and buckets; largest first, then
// in the order of the buffers.
std::vector<BufferGroup> GroupBuffers(const std::vector<PlannedBuffer>& buffers);

}  // namespace zg::plan
