// OffsetsOverTime: places buffers as an allocator would while time passes: each when its lifetime
// begins, into the tightest gap that the ended ones left. In almost linear time, for programs whose
// buffers are too many to compare with one another (assign_offsets.h).
#pragma once

#include <cstdint>
#include <vector>

namespace zg {

// A buffer that is alive at the moments [first, last]. Bytes are positive.
struct TimedBuffer {
  int64_t bytes = 0;
  int first = 0;
  int last = 0;
};

// The offset of each.
std::vector<int64_t> OffsetsOverTime(const std::vector<TimedBuffer>& buffers);

}  // namespace zg
