// Transposes squares of 32-bit elements in vector registers.
#pragma once

#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/prefetch.h"

namespace zg {

// Exchanges the off-diagonal quarters of all squares of 2 * kHalf rows and columns.
template <int kHalf, int kRows>
ZG_INLINE void ExchangeQuarters(Lanes (&rows)[kRows]) {
  LaneIndices low;
  LaneIndices high;
  for (int i = 0; i < kLanes; ++i) {
    low[i] = (i & kHalf) == 0 ? i : i - kHalf + kLanes;
    high[i] = (i & kHalf) == 0 ? i + kHalf : i + kLanes;
  }
  for (int i = 0; i < kRows; ++i) {
    if ((i & kHalf) != 0) continue;
    const Lanes upper = rows[i];
    const Lanes lower = rows[i + kHalf];
    rows[i] = __builtin_shuffle(upper, lower, low);
    rows[i + kHalf] = __builtin_shuffle(upper, lower, high);
  }
}

ZG_INLINE void Transpose(Lanes (&rows)[kLanes]) {
  ExchangeQuarters<8>(rows);
  ExchangeQuarters<4>(rows);
  ExchangeQuarters<2>(rows);
  ExchangeQuarters<1>(rows);
}

// Else the compiler computes the addresses of all rows before a loop, more than there are registers.
ZG_INLINE int64_t KeepInRegister(int64_t stride) {
  asm("" : "+r"(stride));
  return stride;
}

// The transpose of sixteen rows of sixteen elements. Meanwhile what lies `ahead` elements ahead is
// prefetched.
template <typename T>
ZG_INLINE void LoadTransposed(const T* row, int64_t stride, int64_t ahead,
                              Lanes (&square)[kLanes]) {
  const int64_t step = KeepInRegister(stride);
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i, row += step) {
    PrefetchDistant(row + ahead);
    square[i] = LoadLanes(row);
  }
  Transpose(square);
}

// Stores the transpose to sixteen rows, rounded to T.
template <typename T>
ZG_INLINE void StoreTransposed(Lanes (&square)[kLanes], int64_t stride, T* row) {
  Transpose(square);
  for (int i = 0; i < kLanes; ++i, row += stride) {
    float values[kLanes];
    StoreLanes(square[i], values);
    ZG_INDEPENDENT
    for (int k = 0; k < kLanes; ++k) row[k] = FromF32<T>(values[k]);
  }
}

}  // namespace zg
