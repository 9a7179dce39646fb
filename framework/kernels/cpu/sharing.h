// How kernels share their work among the threads of a rank (base/threads.h). Every element of a
// result is computed by one thread, with the same operations as in a single-threaded run; sums over
// elements keep their blocks and their order. So the bits do not depend on the number of threads.
//
//   ForRanges(arguments.threads, rows, 1, columns, [&](int64_t begin, int64_t end, int thread) {
//     for (int64_t row = begin; row < end; ++row) ...
//   });
//
// Scratch that every thread needs for itself is in the workspace NumSharing() times.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/base/threads.h"

namespace zg {

// For tests: from now on even the smallest work is shared, as far as it can be cut.
void ShareSmallWork(bool shares);

// How many of `threads` share `count` items that are cut at multiples of `unit`. Each item is as
// much work as `cost` elements of a sum of two tensors. With less than about 16000 for each thread,
// 5 us, waking threads takes longer. At least one.
int NumSharing(int threads, int64_t count, int64_t unit, int64_t cost);

// The same for a matrix product, of which a thread should get about 500000 multiplications.
int NumSharingProduct(int threads, int64_t count, int64_t unit, int64_t multiplications);

// The item at which range `i` of `num_ranges` begins; ranges are as equal as multiples of `unit`
// allow.
inline int64_t RangeBegin(int64_t count, int64_t unit, int64_t num_ranges, int64_t i) {
  const int64_t units = (count + unit - 1) / unit;
  return std::min(count, units * i / num_ranges * unit);
}

// Calls body(begin, end, thread) for `num_ranges` ranges that make up [0, count). If `threads` is
// null, the calling thread does all of it.
template <typename Body>
void ForEqualRanges(Threads* threads, int num_ranges, int64_t count, int64_t unit,
                    const Body& body) {
  if (num_ranges == 1 || threads == nullptr) return body(0, count, 0);
  threads->Run(num_ranges, [&](int64_t i, int thread) {
    body(RangeBegin(count, unit, num_ranges, i), RangeBegin(count, unit, num_ranges, i + 1),
         thread);
  });
}

// The same for as many ranges as NumSharing() says.
template <typename Body>
void ForRanges(Threads* threads, int64_t count, int64_t unit, int64_t cost, const Body& body) {
  const int available = threads == nullptr ? 1 : threads->count();
  ForEqualRanges(threads, NumSharing(available, count, unit, cost), count, unit, body);
}

// The workspace of `num_sharing` threads with `bytes` of scratch each, on separate cache lines.
inline int64_t WholeLines(int64_t bytes) { return (bytes + 63) / 64 * 64; }
inline int64_t WorkspaceBytes(int num_sharing, int64_t bytes) {
  return (num_sharing - 1) * WholeLines(bytes) + bytes;
}
// The scratch of one of these threads.
inline void* WorkspaceOf(int thread, void* workspace, int64_t bytes) {
  return static_cast<char*>(workspace) + thread * WholeLines(bytes);
}

// A multiple of elements at which contiguous tensors are cut so that no two threads write the same
// cache line.
inline constexpr int64_t kElementUnit = 64;

}  // namespace zg
