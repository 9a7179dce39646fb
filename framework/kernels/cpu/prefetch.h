// Prefetches a row of elements into the first-level cache: to be read, or written, after other work
// that needs no memory. A burst of stores to a row that is not there would wait for memory.
#pragma once

#include <cstdint>

#include "framework/base/host_device.h"

namespace zg {

template <int kForWriting, typename T>
ZG_INLINE void PrefetchRow(const T* row, int64_t columns) {
  const char* const begin = reinterpret_cast<const char*>(row);
  const int64_t bytes = columns * static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(begin + i, kForWriting);
}

}  // namespace zg
