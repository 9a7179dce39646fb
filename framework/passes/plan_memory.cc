#include "framework/passes/plan_memory.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "framework/base/check.h"
#include "framework/passes/assign_offsets.h"
#include "framework/passes/nodes_of_groups.h"

namespace zg {
namespace {

struct Moment {
  int timeline = 0;
  int position = 0;
};

// Training sections follow each other on timeline 0; every eval section has its own.
std::unordered_map<const ir::Node*, Moment> Moments(const ir::Graph& graph) {
  std::unordered_map<const ir::Node*, Moment> moments;
  int timeline = 0;
  int position = 0;
  for (const auto& section : graph.sections()) {
    if (section->kind == ir::SectionKind::kVariables) continue;
    if (section->kind == ir::SectionKind::kEval) {
      ++timeline;
      position = 0;
    }
    for (const ir::Node* node : section->nodes) moments[node] = {timeline, position++};
  }
  return moments;
}

// Until its kernel is done with its scratch memory: for a kernel that only starts, at the wait,
// which may be in another step.
Lifetime WorkspaceLifetime(const ir::Node& node, int64_t bytes,
                           const std::unordered_map<const ir::Node*, Moment>& moments) {
  const Moment moment = moments.at(&node);
  Lifetime lifetime = {bytes, moment.timeline, moment.position, moment.position};
  if (!ir::IsStart(node)) return lifetime;
  for (const ir::Node* user : node.outputs[0]->users) {
    if (user->op->traits.kind != ir::OpKind::kWait) continue;
    lifetime.last = moments.at(user).position;
    return lifetime;
  }
  return {bytes, Lifetime::kAllTimelines};
}

PlannedBuffer LifetimeOf(const Buffer& buffer,
                         const std::unordered_map<const ir::Node*, Moment>& moments) {
  PlannedBuffer planned;
  if (buffer.members.empty()) return planned;
  planned.name = buffer.root->name;
  planned.category = CategoryOf(*buffer.root);
  planned.bytes = buffer.bytes;
  if (buffer.root->producer->op->traits.kind == ir::OpKind::kVariable) {
    planned.timeline = Lifetime::kAllTimelines;
    return planned;
  }
  const Moment birth = moments.at(buffer.root->producer);
  planned.timeline = birth.timeline;
  planned.first = planned.last = birth.position;
  for (const ir::Value* member : buffer.members) {
    planned.first = std::min(planned.first, moments.at(member->producer).position);
    planned.last = std::max(planned.last, moments.at(member->producer).position);
    for (const ir::Node* user : member->users)
      planned.last = std::max(planned.last, moments.at(user).position);
  }
  return planned;
}

// Variables of one step go last: then those that outlive it lie at the same places in programs that
// differ in the others (same_variables.h).
std::vector<int> InOrderOfPlacement(const MemoryPlan& plan) {
  std::vector<int> order(plan.buffers.size());
  std::iota(order.begin(), order.end(), 0);
  const std::vector<Buffer>& stored = plan.storage.buffers;
  std::stable_partition(order.begin(), order.end(), [&](int i) {
    const bool is_stored = i < static_cast<int>(stored.size()) && !stored[i].members.empty();
    return !is_stored || !HoldsForOneStep(*stored[i].root);
  });
  return order;
}

int AddBuffer(MemoryPlan* plan, PlannedBuffer buffer) {
  plan->buffers.push_back(std::move(buffer));
  return static_cast<int>(plan->buffers.size()) - 1;
}

}  // namespace

int64_t MemoryPlan::BaseOffset(const ir::Value* value) const {
  const Location& location = storage.Of(value);
  return buffers[location.buffer].offset + location.offset_bytes;
}

int64_t MemoryPlan::OffsetOn(const ir::Value* value, int rank) const {
  const Location& location = storage.Of(value);
  return buffers[location.buffer].offset + location.OffsetOn(mesh, rank);
}

int64_t MemoryPlan::OwnBytes() const {
  int64_t end = 0;
  for (const PlannedBuffer& buffer : buffers) end = std::max(end, buffer.offset + buffer.bytes);
  return (end + kBufferAlignmentBytes - 1) / kBufferAlignmentBytes * kBufferAlignmentBytes;
}

CategoryBytes PeakByCategory(const std::vector<PlannedBuffer>& buffers) {
  CategoryBytes always = {};
  std::map<std::pair<int, int>, CategoryBytes> changes;  // (timeline, moment)
  for (const PlannedBuffer& buffer : buffers) {
    const int category = static_cast<int>(buffer.category);
    if (buffer.timeline == Lifetime::kAllTimelines) {
      always[category] += buffer.bytes;
    } else {
      changes[{buffer.timeline, buffer.first}][category] += buffer.bytes;
      changes[{buffer.timeline, buffer.last + 1}][category] -= buffer.bytes;
    }
  }
  CategoryBytes alive = {};
  CategoryBytes peak = {};
  for (const auto& [moment, change] : changes) {
    for (int i = 0; i < kNumMemoryCategories; ++i)
      peak[i] = std::max(peak[i], alive[i] += change[i]);
  }
  for (int i = 0; i < kNumMemoryCategories; ++i) peak[i] += always[i];
  return peak;
}

MemoryPlan PlanMemory(const ir::Graph& graph, const PlanMemoryOptions& options) {
  const std::unordered_map<const ir::Node*, Moment> moments = Moments(graph);
  MemoryPlan plan;
  plan.mesh = graph.mesh();
  plan.storage = AssignStorage(graph);
  for (const Buffer& buffer : plan.storage.buffers)
    plan.buffers.push_back(LifetimeOf(buffer, moments));
  for (const auto& section : graph.sections()) {
    for (const ir::Node* node : section->nodes) {
      const int64_t bytes = options.workspace_bytes == nullptr ? 0 : options.workspace_bytes(*node);
      if (bytes == 0) continue;
      const Lifetime lifetime = WorkspaceLifetime(*node, bytes, moments);
      plan.workspaces[node] =
          AddBuffer(&plan, {node->op->name, MemoryCategory::kWorkspace, bytes, 0, lifetime.timeline,
                            lifetime.first, lifetime.last});
    }
  }
  if (options.communicator_workspace_bytes > 0) {
    plan.communicator_workspace =
        AddBuffer(&plan, {"communicator", MemoryCategory::kWorkspace,
                          options.communicator_workspace_bytes, 0, Lifetime::kAllTimelines});
  }
  const std::vector<int> order = InOrderOfPlacement(plan);
  std::vector<Lifetime> lifetimes;
  for (const int i : order) {
    const PlannedBuffer& buffer = plan.buffers[i];
    lifetimes.push_back({buffer.bytes, buffer.timeline, buffer.first, buffer.last});
  }
  const OffsetPlan offsets = AssignOffsets(lifetimes);
  for (size_t i = 0; i < order.size(); ++i) plan.buffers[order[i]].offset = offsets.offsets[i];
  plan.arena_bytes = offsets.arena_bytes;
  plan.lower_bound_bytes = offsets.lower_bound_bytes;
  plan.category_bytes = PeakByCategory(plan.buffers);
  return plan;
}

}  // namespace zg
