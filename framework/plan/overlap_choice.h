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
  std::vector<OverlapChoice> tried;  // by max_bytes, off first; empty: nothing was to be chosen
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
