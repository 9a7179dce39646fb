#include "framework/passes/offsets_over_time.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace zg {
namespace {

// The free bytes below the top, as gaps that do not touch.
class Gaps {
 public:
  // The begin of `bytes` free ones, at the top if no gap is as large.
  int64_t Take(int64_t bytes) {
    const auto tightest = by_size_.lower_bound({bytes, 0});
    if (tightest != by_size_.end()) {
      const auto [size, begin] = *tightest;
      Remove(begin, size);
      if (size > bytes) Insert(begin + bytes, size - bytes);
      return begin;
    }
    // A gap that ends at the top is part of the place.
    int64_t begin = top_;
    if (!sizes_.empty()) {
      const auto [last, size] = *sizes_.rbegin();
      if (last + size == top_) {
        begin = last;
        Remove(last, size);
      }
    }
    top_ = begin + bytes;
    return begin;
  }

  void GiveBack(int64_t begin, int64_t bytes) {
    auto next = sizes_.upper_bound(begin);
    if (next != sizes_.end() && begin + bytes == next->first) {
      const auto [other, size] = *next;
      Remove(other, size);
      bytes += size;
    }
    next = sizes_.upper_bound(begin);
    if (next != sizes_.begin()) {
      const auto [other, size] = *std::prev(next);
      if (other + size == begin) {
        Remove(other, size);
        begin = other;
        bytes += size;
      }
    }
    Insert(begin, bytes);
  }

 private:
  void Insert(int64_t begin, int64_t size) {
    sizes_[begin] = size;
    by_size_.insert({size, begin});
  }
  void Remove(int64_t begin, int64_t size) {
    sizes_.erase(begin);
    by_size_.erase({size, begin});
  }

  int64_t top_ = 0;
  std::map<int64_t, int64_t> sizes_;               // by begin
  std::set<std::pair<int64_t, int64_t>> by_size_;  // size, begin
};

}  // namespace

std::vector<int64_t> OffsetsOverTime(const std::vector<TimedBuffer>& buffers) {
  // The largest first of those that begin together.
  std::vector<int> by_first(buffers.size());
  std::iota(by_first.begin(), by_first.end(), 0);
  std::vector<int> by_last = by_first;
  std::stable_sort(by_first.begin(), by_first.end(), [&](int a, int b) {
    return std::pair(buffers[a].first, -buffers[a].bytes) <
           std::pair(buffers[b].first, -buffers[b].bytes);
  });
  std::stable_sort(by_last.begin(), by_last.end(),
                   [&](int a, int b) { return buffers[a].last < buffers[b].last; });
  std::vector<int64_t> offsets(buffers.size());
  Gaps gaps;
  size_t num_ended = 0;
  for (const int index : by_first) {
    for (; buffers[by_last[num_ended]].last < buffers[index].first; ++num_ended) {
      gaps.GiveBack(offsets[by_last[num_ended]], buffers[by_last[num_ended]].bytes);
    }
    offsets[index] = gaps.Take(buffers[index].bytes);
  }
  return offsets;
}

}  // namespace zg
