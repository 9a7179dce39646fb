// Variant: which of a graph's training programs one is: the one for inputs of a size, or the one of a
// phase. All of them train the same parameters (nn/graph.h).
#pragma once

#include <cstdint>
#include <string>

namespace zg {

struct Variant {
  int64_t size = 0;        // 0: the graph has no sizes
  std::string phase = "";  // "": the graph has no phases

  bool is_only() const { return size == 0 && phase.empty(); }
  // "size 128", "phase 'critic'"; "" if it is the only one.
  std::string ToString() const {
    if (size != 0) return "size " + std::to_string(size);
    return phase.empty() ? "" : "phase '" + phase + "'";
  }
  // "at size 128", "in phase 'critic'".
  std::string Where() const { return (phase.empty() ? "at " : "in ") + ToString(); }
  friend bool operator==(const Variant& a, const Variant& b) {
    return a.size == b.size && a.phase == b.phase;
  }
};

}  // namespace zg
