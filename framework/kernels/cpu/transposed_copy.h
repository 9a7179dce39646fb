// Copies a tile of a matrix to its transpose. The result of a permutation consists of such tiles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/transpose.h"

namespace zg {

// The size of a tile. It has few enough rows and columns for the tables of pages and for the
// second-level cache, and they are long enough for the processor to fetch them ahead.
template <typename T>
inline constexpr int64_t kTileRows = 1024 / sizeof(T);
template <typename T>
inline constexpr int64_t kTileColumns = 256 / sizeof(T);

// y[r * y_step + c] = x[r + c * x_step].
template <typename T>
struct TransposedTile {
  const T* x;
  int64_t x_step;
  T* y;
  int64_t y_step;
  int64_t rows;
  int64_t columns;
};

template <typename T>
ZG_INLINE LaneBits LoadBits(const T* x) {
  return LaneBits{x[0], x[1], x[2],  x[3],  x[4],  x[5],  x[6],  x[7],
                  x[8], x[9], x[10], x[11], x[12], x[13], x[14], x[15]};
}
ZG_INLINE LaneBits LoadBits(const uint32_t* x) {
  LaneBits bits;
  std::memcpy(&bits, x, sizeof(bits));
  return bits;
}

// Sixteen rows of 64 bytes, in vector registers; neighbours in y are packed into 32 bits. Whole
// cache lines of y are written at once, because lines that are a power of two apart would not stay
// in the first-level cache.
template <typename T>
ZG_INLINE void CopySquare(const T* x, int64_t x_step, T* y, int64_t y_step) {
  constexpr int kPacked = sizeof(uint32_t) / sizeof(T);
  Lanes rows[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    LaneBits bits = {};
    for (int k = 0; k < kPacked; ++k, x += x_step) bits |= LoadBits(x) << (k * 8 * sizeof(T));
    std::memcpy(&rows[i], &bits, sizeof(bits));
  }
  Transpose(rows);
  for (int i = 0; i < kLanes; ++i) std::memcpy(y + i * y_step, &rows[i], sizeof(Lanes));
}

// Copies whole squares below each other; returns the number of their rows.
template <typename T>
int64_t CopySquares(const T* x, int64_t x_step, int64_t rows, T* y, int64_t y_step) {
  return Multiversion([=]() ZG_VERSION {
    int64_t r = 0;
    for (; r + kLanes <= rows; r += kLanes) CopySquare(x + r, x_step, y + r * y_step, y_step);
    return r;
  });
}

template <typename T>
void CopyTransposed(const TransposedTile<T>& tile) {
  constexpr int64_t kWidth = 64 / sizeof(T);
  const int64_t x_step = tile.x_step, y_step = tile.y_step, rows = tile.rows;
  for (int64_t begin = 0; begin < tile.columns; begin += kWidth) {
    const int64_t columns = std::min(kWidth, tile.columns - begin);
    const T* const x = tile.x + begin * x_step;
    T* const y = tile.y + begin;
    int64_t r = 0;
    if constexpr (sizeof(T) <= sizeof(uint32_t)) {
      if (columns == kWidth) r = CopySquares(x, x_step, rows, y, y_step);
    }
    for (; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) y[r * y_step + c] = x[r + c * x_step];
    }
  }
}

}  // namespace zg
