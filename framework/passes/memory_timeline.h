// MemoryTimeline: what is alive at each moment of a training step, from a memory plan. It shows
// people where the memory goes; the executor does not need it.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/ir/graph.h"
#include "framework/passes/plan_memory.h"

namespace zg {

// A node while it runs. Forward and backward are shown once, regardless of the number of
// micro-batches.
struct MemoryMoment {
  const ir::Node* node = nullptr;
  CategoryBytes alive = {};  // indexed by MemoryCategory
  int64_t total_bytes() const;
};

struct MemoryTimeline {
  std::vector<MemoryMoment> moments;  // index: PlannedBuffer's moments on timeline 0
  int peak = -1;                      // the first moment with the most bytes; -1 without moments
};

MemoryTimeline TrainingTimeline(const ir::Graph& graph, const MemoryPlan& plan);

// The training buffers that are alive at the moment, largest first, then in the plan's order.
std::vector<const PlannedBuffer*> AliveAt(const MemoryPlan& plan, int moment);

}  // namespace zg
