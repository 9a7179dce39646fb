// PlanMemory: the last step of compilation. Assigns every value of a scheduled graph an offset in
// one arena per rank, and predicts the bytes of every category. The plan is the same on all ranks;
// the executor only adds addresses.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/ir/graph.h"
#include "framework/ir/memory_category.h"
#include "framework/passes/storage.h"

namespace zg {

using CategoryBytes = std::array<int64_t, kNumMemoryCategories>;

struct PlannedBuffer {
  std::string name;
  MemoryCategory category = MemoryCategory::kActivations;
  int64_t bytes = 0;
  int64_t offset = 0;  // in the arena
  // 0: training; 1, 2, ...: the eval sections; Lifetime::kAllTimelines: variables.
  int timeline = 0;
  // Alive at the moments [first, last]: positions of nodes on the timeline.
  int first = 0;
  int last = 0;
};

struct MemoryPlan {
  Mesh mesh;
  Storage storage;                                      // buffer ids index `buffers`
  std::vector<PlannedBuffer> buffers;                   // merged-away buffers have 0 bytes
  std::unordered_map<const ir::Node*, int> workspaces;  // node -> its workspace's buffer
  int communicator_workspace = -1;                      // its buffer, -1 when none is needed

  int64_t arena_bytes = 0;  // the predicted peak
  int64_t lower_bound_bytes = 0;
  CategoryBytes category_bytes = {};  // the most bytes alive at one moment, per category

  // The offset of a value in the arena of `rank`: the base, plus the axis strides of its location
  // times the rank's coordinates.
  int64_t OffsetOn(const ir::Value* value, int rank) const;
  int64_t BaseOffset(const ir::Value* value) const;
  // The arena's bytes without room that it has for other programs (Program::other_variants).
  int64_t OwnBytes() const;
};

struct PlanMemoryOptions {
  // Scratch memory that the kernel of a node needs; null: none.
  std::function<int64_t(const ir::Node&)> workspace_bytes;
  // Scratch memory that the transport needs (Arena::workspace_bytes).
  int64_t communicator_workspace_bytes = 0;
};

MemoryPlan PlanMemory(const ir::Graph& graph, const PlanMemoryOptions& options);

// The most bytes of each category alive at one moment of any timeline.
CategoryBytes PeakByCategory(const std::vector<PlannedBuffer>& buffers);

}  // namespace zg
