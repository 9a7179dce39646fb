#include "framework/passes/assign_offsets.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

namespace zg {
namespace {

int64_t Aligned(int64_t bytes) {
  return (bytes + kBufferAlignmentBytes - 1) / kBufferAlignmentBytes * kBufferAlignmentBytes;
}

bool AliveTogether(const Lifetime& a, const Lifetime& b) {
  if (a.timeline == Lifetime::kAllTimelines || b.timeline == Lifetime::kAllTimelines) return true;
  return a.timeline == b.timeline && a.first <= b.last && b.first <= a.last;
}

int64_t Duration(const Lifetime& buffer) { return buffer.last - buffer.first + 1; }

// The largest sum of bytes alive at one moment.
int64_t LowerBound(const std::vector<Lifetime>& buffers) {
  int64_t always = 0;
  std::map<std::pair<int, int>, int64_t>
      changes;  // (timeline, moment) -> bytes born minus bytes gone
  for (const Lifetime& buffer : buffers) {
    if (buffer.timeline == Lifetime::kAllTimelines) {
      always += Aligned(buffer.bytes);
    } else {
      changes[{buffer.timeline, buffer.first}] += Aligned(buffer.bytes);
      changes[{buffer.timeline, buffer.last + 1}] -= Aligned(buffer.bytes);
    }
  }
  int64_t alive = 0;
  int64_t largest = 0;
  for (const auto& [moment, change] : changes) largest = std::max(largest, alive += change);
  return always + largest;
}

// Puts the buffers, in the given order, at the lowest offset where they fit.
std::pair<std::vector<int64_t>, int64_t> Place(const std::vector<Lifetime>& buffers,
                                               const std::vector<int>& order) {
  std::vector<int64_t> offsets(buffers.size(), 0);
  std::vector<int> placed;  // by offset
  int64_t arena_bytes = 0;
  for (int index : order) {
    const int64_t bytes = Aligned(buffers[index].bytes);
    int64_t offset = 0;
    for (int other : placed) {
      if (!AliveTogether(buffers[index], buffers[other])) continue;
      if (offset + bytes <= offsets[other]) break;
      offset = std::max(offset, offsets[other] + Aligned(buffers[other].bytes));
    }
    offsets[index] = offset;
    arena_bytes = std::max(arena_bytes, offset + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), index,
                                   [&](int a, int b) { return offsets[a] < offsets[b]; }),
                  index);
  }
  return {std::move(offsets), arena_bytes};
}

}  // namespace

OffsetPlan AssignOffsets(const std::vector<Lifetime>& buffers) {
  using Key = std::function<std::pair<int64_t, int64_t>(const Lifetime&)>;  // larger goes first
  const Key orders[] = {
      [](const Lifetime& b) { return std::pair(b.bytes, Duration(b)); },
      [](const Lifetime& b) { return std::pair(b.bytes * Duration(b), b.bytes); },
      [](const Lifetime& b) { return std::pair(Duration(b), b.bytes); },
      [](const Lifetime& b) { return std::pair(int64_t{-b.first}, b.bytes); },
      [](const Lifetime& b) { return std::pair(int64_t{b.last}, b.bytes); },
  };
  OffsetPlan best;
  best.lower_bound_bytes = LowerBound(buffers);
  for (const Key& key : orders) {
    std::vector<int> order(buffers.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      const bool a_always = buffers[a].timeline == Lifetime::kAllTimelines;
      const bool b_always = buffers[b].timeline == Lifetime::kAllTimelines;
      if (a_always != b_always) return a_always;
      return key(buffers[a]) > key(buffers[b]);
    });
    auto [offsets, arena_bytes] = Place(buffers, order);
    if (best.offsets.empty() || arena_bytes < best.arena_bytes) {
      best.offsets = std::move(offsets);
      best.arena_bytes = arena_bytes;
    }
    if (best.arena_bytes == best.lower_bound_bytes) break;
  }
  return best;
}

}  // namespace zg
