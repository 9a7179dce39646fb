#include "framework/runtime/memory_meter.h"

#include <algorithm>

#include "framework/passes/assign_offsets.h"

namespace zg {

void MemoryMeter::Touch(int buffer, int timeline, int position, int64_t begin, int64_t end) {
  Touched& touched = touched_[buffer];
  if (!touched.any) {
    touched = {true, timeline, position, position, begin, end};
    return;
  }
  // A buffer that outlives one run, or is used by several, is a variable, which is always alive.
  if (touched.timeline != timeline) touched.timeline = Lifetime::kAllTimelines;
  touched.first = std::min(touched.first, position);
  touched.last = std::max(touched.last, position);
  touched.begin = std::min(touched.begin, begin);
  touched.end = std::max(touched.end, end);
}

CategoryBytes MemoryMeter::category_bytes() const {
  std::vector<PlannedBuffer> measured;
  for (size_t i = 0; i < plan_.size(); ++i) {
    const Touched& touched = touched_[i];
    if (!touched.any) continue;
    PlannedBuffer buffer = plan_[i];
    buffer.bytes = touched.end - touched.begin;
    if (buffer.timeline != Lifetime::kAllTimelines) buffer.timeline = touched.timeline;
    buffer.first = touched.first;
    buffer.last = touched.last;
    measured.push_back(std::move(buffer));
  }
  return PeakByCategory(measured);
}

int64_t MemoryMeter::peak_bytes() const {
  int64_t end = 0;
  for (const Touched& touched : touched_) end = std::max(end, touched.end);
  return (end + kBufferAlignmentBytes - 1) / kBufferAlignmentBytes * kBufferAlignmentBytes;
}

}  // namespace zg
