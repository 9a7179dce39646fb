// Prefetches what a loop reads or writes later.
//
// Loops that compute more than a few instructions per element prefetch, run by run, what they reach
// next: the processor itself does not prefetch beyond a page, and leaves such a loop no time to catch
// up.
#pragma once

#include <cstdint>

#include "framework/base/host_device.h"

namespace zg {

inline constexpr int64_t kPrefetchRun = 128;     // elements
inline constexpr int64_t kPrefetchAhead = 1024;  // elements

// A row of elements, into the first-level cache: to be read, or written, after other work that needs
// no memory. A burst of stores to a row that is not there would wait for memory.
template <int kForWriting, typename T>
ZG_INLINE void PrefetchRow(const T* row, int64_t columns) {
  const char* const begin = reinterpret_cast<const char*>(row);
  const int64_t bytes = columns * static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(begin + i, kForWriting);
}

// One line of a row of a matrix, into the second-level cache: in the first, rows that are a power of
// two apart displace each other before they are read.
ZG_INLINE void PrefetchDistant(const void* line) {
  __builtin_prefetch(line, /*rw=*/0, /*locality=*/2);
}

// The lines of `columns` elements of such a row.
template <typename T>
ZG_INLINE void PrefetchDistantRow(const T* row, int64_t columns) {
  const char* const begin = reinterpret_cast<const char*>(row);
  const int64_t bytes = columns * static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < bytes; i += 64) PrefetchDistant(begin + i);
}

}  // namespace zg
