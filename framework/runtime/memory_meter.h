// MemoryMeter: measures the memory that a run touches, to compare it with the plan. The runner
// reports every operand of every instruction; a buffer counts as alive from its first touch to its
// last.
#pragma once

#include <vector>

#include "framework/passes/plan_memory.h"

namespace zg {

class MemoryMeter {
 public:
  explicit MemoryMeter(const std::vector<PlannedBuffer>& plan)
      : plan_(plan), touched_(plan.size()) {}

  // The instruction at `position` of `timeline` touched bytes [begin, end) of the arena, which
  // belong to `buffer`.
  void Touch(int buffer, int timeline, int position, int64_t begin, int64_t end);

  // By category: the most bytes alive at one moment, among those touched so far.
  CategoryBytes category_bytes() const;
  // The end of the highest byte touched, rounded up to the alignment of buffers.
  int64_t peak_bytes() const;

 private:
  struct Touched {
    bool any = false;
    int timeline = 0;
    int first = 0;
    int last = 0;
    int64_t begin = 0;
    int64_t end = 0;
  };

  const std::vector<PlannedBuffer>& plan_;
  std::vector<Touched> touched_;
};

}  // namespace zg
