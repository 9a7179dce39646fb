// OverlapChoice: one of the limits that `overlap` auto chooses from by prices, with what is predicted
// for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zg::plan {

struct OverlapChoice {
  int64_t max_bytes = 0;  // CompileOptions::overlap_bytes
  double step_ms = 0;
  int64_t peak_bytes = 0;
};

struct OverlapChoices {
  // By max_bytes, off first, without limits whose programs need more than
  // CompileOptions::max_memory_bytes; empty: nothing was to be chosen.
  std::vector<OverlapChoice> tried;
  size_t chosen = 0;

  const OverlapChoice& best() const { return tried[chosen]; }
};

// The index of the best: the one that needs the least memory among those whose step takes at most
// 5 % longer than the fastest.
size_t BestOverlap(const std::vector<OverlapChoice>& tried);

// "off", "16.8 MB" or "unlimited".
std::string OverlapLimitText(int64_t max_bytes);

// A table of them.
std::string OverlapTable(const OverlapChoices& choices);

}  // namespace zg::plan
