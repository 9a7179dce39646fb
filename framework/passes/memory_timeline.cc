#include "framework/passes/memory_timeline.h"

#include <algorithm>
#include <numeric>

#include "framework/passes/assign_offsets.h"

namespace zg {
namespace {

constexpr int kTraining = 0;

}  // namespace

int64_t MemoryMoment::total_bytes() const {
  return std::accumulate(alive.begin(), alive.end(), int64_t{0});
}

MemoryTimeline TrainingTimeline(const ir::Graph& graph, const MemoryPlan& plan) {
  MemoryTimeline timeline;
  for (const auto& section : graph.sections()) {
    if (section->kind == ir::SectionKind::kVariables || section->kind == ir::SectionKind::kEval)
      continue;
    for (const ir::Node* node : section->nodes) timeline.moments.push_back({node});
  }
  if (timeline.moments.empty()) return timeline;
  std::vector<CategoryBytes> changes(timeline.moments.size() + 1);
  for (const PlannedBuffer& buffer : plan.buffers) {
    const int category = static_cast<int>(buffer.category);
    if (buffer.timeline == Lifetime::kAllTimelines) {
      changes.front()[category] += buffer.bytes;
    } else if (buffer.timeline == kTraining) {
      changes[buffer.first][category] += buffer.bytes;
      changes[buffer.last + 1][category] -= buffer.bytes;
    }
  }
  CategoryBytes alive = {};
  int64_t most = -1;
  for (size_t i = 0; i < timeline.moments.size(); ++i) {
    for (int category = 0; category < kNumMemoryCategories; ++category) {
      alive[category] += changes[i][category];
    }
    timeline.moments[i].alive = alive;
    if (timeline.moments[i].total_bytes() <= most) continue;
    most = timeline.moments[i].total_bytes();
    timeline.peak = static_cast<int>(i);
  }
  return timeline;
}

std::vector<const PlannedBuffer*> AliveAt(const MemoryPlan& plan, int moment) {
  std::vector<const PlannedBuffer*> alive;
  for (const PlannedBuffer& buffer : plan.buffers) {
    if (buffer.bytes == 0) continue;
    const bool always = buffer.timeline == Lifetime::kAllTimelines;
    const bool now =
        buffer.timeline == kTraining && buffer.first <= moment && moment <= buffer.last;
    if (always || now) alive.push_back(&buffer);
  }
  std::stable_sort(alive.begin(), alive.end(), [](const PlannedBuffer* a, const PlannedBuffer* b) {
    return a->bytes > b->bytes;
  });
  return alive;
}

}  // namespace zg
