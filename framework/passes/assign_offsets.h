// AssignOffsets: where in one arena every buffer goes, so that buffers that are alive at the same
// time do not overlap and the arena is small. (Dynamic storage allocation; NP-hard, greedy here.)
#pragma once

#include <cstdint>
#include <vector>

namespace zg {

// A buffer is alive at the moments [first, last] of one timeline, or always.
struct Lifetime {
  int64_t bytes = 0;
  int timeline =
      0;  // buffers of different timelines are never alive together; kAllTimelines: always alive
  int first = 0;
  int last = 0;
  static constexpr int kAllTimelines = -1;
};

struct OffsetPlan {
  std::vector<int64_t> offsets;  // of each buffer, multiples of 64 bytes
  int64_t arena_bytes = 0;
  int64_t lower_bound_bytes =
      0;  // the largest sum of bytes alive at one moment; no plan can be smaller
};

inline constexpr int64_t kBufferAlignmentBytes = 64;

// Tries several greedy orders and keeps the smallest arena; deterministic.
OffsetPlan AssignOffsets(const std::vector<Lifetime>& buffers);

}  // namespace zg
