// How kernels share their work among the threads of a rank (base/threads.h). Every element of a result
// is computed by one thread, by the operations that one thread alone would take; sums over elements
// keep their blocks and their order. So the bits know nothing of the number of threads.
//
//   ForRanges(arguments.threads, rows, 1, columns, [&](int64_t begin, int64_t end, int thread) {
//     for (int64_t row = begin; row < end; ++row) ...
//   });
//
// Scratch that every thread needs for itself stands in the workspace once for each of NumSharing().
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/base/threads.h"

namespace zg {

// For tests: from now on the smallest work is shared, too, as far as it can be cut.
void ShareSmallWork(bool shares);

// How many of `threads` share `count` items that are cut at multiples of `unit`, each as much work as
// `cost` elements of a sum of two tensors: with less than some 16000 for each, 5 us, waking them
// takes longer. At least one.
int NumSharing(int threads, int64_t count, int64_t unit, int64_t cost);

// The same of a product of matrices, from which a thread should get some 500000 multiplications.
int NumSharingProduct(int threads, int64_t count, int64_t unit, int64_t multiplications);

// Item at which range `i` of `num_ranges` begins, as equal as multiples of `unit` can be.
inline int64_t RangeBegin(int64_t count, int64_t unit, int64_t num_ranges, int64_t i) {
  const int64_t units = (count + unit - 1) / unit;
  return std::min(count, units * i / num_ranges * unit);
}

// body(begin, end, thread) for `num_ranges` ranges that make up [0, count); for all of it where
// `threads` is null, for the calling one alone.
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

// Of `num_sharing` threads, each with `bytes` of scratch on cache lines of its own.
inline int64_t WholeLines(int64_t bytes) { return (bytes + 63) / 64 * 64; }
inline int64_t WorkspaceBytes(int num_sharing, int64_t bytes) {
  return (num_sharing - 1) * WholeLines(bytes) + bytes;
}
// The scratch of one of them.
inline void* WorkspaceOf(int thread, void* workspace, int64_t bytes) {
  return static_cast<char*>(workspace) + thread * WholeLines(bytes);
}

// Elements of contiguous tensors whose cache lines no two threads write.
inline constexpr int64_t kElementUnit = 64;

}  // namespace zg
