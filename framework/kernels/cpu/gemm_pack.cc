#include "framework/kernels/cpu/gemm_pack.h"

#include <algorithm>
#include <cstring>

#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/prefetch.h"
#include "framework/kernels/cpu/transpose.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

static_assert(kPanelUnit == kLanes && kTileRows == kLanes / 2);

// Copies sixteen columns of a panel from sixteen columns of b; prefetches what lies `next` elements
// ahead meanwhile.
template <typename T>
ZG_INLINE void TransposeStripOf(const T* b, int64_t stride, int64_t next, int64_t depth,
                                int64_t width, float* strip) {
  int64_t k = 0;
  for (; k + kLanes <= depth; k += kLanes) {
    Lanes rows[kLanes];
    LoadTransposed(b + k, stride, next, rows);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) StoreLanes(rows[i], strip + (k + i) * width);
  }
  for (; k < depth; ++k) {
    for (int i = 0; i < kLanes; ++i) strip[k * width + i] = ToF32(b[i * stride + k]);
  }
}
template <typename T>
void TransposeStrip(const T* b, int64_t stride, int64_t next, int64_t depth, int64_t width,
                    float* strip) {
  Multiversion([=]() ZG_VERSION { TransposeStripOf(b, stride, next, depth, width, strip); });
}

// The whole units of a block of B, row by row.
template <typename T>
ZG_INLINE void SpreadRowsOf(const T* b, int64_t stride, int64_t depth, int64_t columns,
                            float* panels) {
  for (int64_t k = 0; k < depth; ++k) {
    const T* const row = b + k * stride;
    for (int64_t begin = 0; begin < columns;) {
      const int64_t width = PanelWidth(columns - begin);
      float* const out = panels + begin * depth + k * width;
      const int64_t end = std::min(begin + width, columns);
      for (int64_t j = begin; j + kLanes <= end; j += kLanes) {
        PrefetchDistant(row + kRowsAhead * stride + j);
        StoreLanes(LoadLanes(row + j), out + (j - begin));
      }
      begin += width;
    }
  }
}
template <typename T>
void SpreadRows(const T* b, int64_t stride, int64_t depth, int64_t columns, float* panels) {
  Multiversion([=]() ZG_VERSION { SpreadRowsOf(b, stride, depth, columns, panels); });
}

ZG_INLINE Lanes FirstHalves(Lanes a, Lanes b) {
  return __builtin_shuffle(a, b,
                           LaneIndices{0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23});
}
ZG_INLINE Lanes LastHalves(Lanes a, Lanes b) {
  return __builtin_shuffle(
      a, b, LaneIndices{8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31});
}

// Copies eight rows of a; prefetches the next eight meanwhile.
template <typename T>
ZG_INLINE void TransposePieceOf(const T* a, int64_t stride, int64_t depth, float* piece) {
  int64_t k = 0;
  for (; k + kLanes <= depth; k += kLanes) {
    Lanes rows[kTileRows];
    const T* row = a + k;
    const int64_t step = KeepInRegister(stride);
#pragma GCC unroll 8
    for (int i = 0; i < kTileRows; ++i, row += step) {
      PrefetchDistant(row + kTileRows * step);
      rows[i] = LoadLanes(row);
    }
    ExchangeQuarters<4>(rows);
    ExchangeQuarters<2>(rows);
    ExchangeQuarters<1>(rows);
    // Vector i now holds the eight elements of k + i, then those of k + i + 8.
#pragma GCC unroll 4
    for (int i = 0; i < kTileRows; i += 2) {
      StoreLanes(FirstHalves(rows[i], rows[i + 1]), piece + (k + i) * kTileRows);
      StoreLanes(LastHalves(rows[i], rows[i + 1]), piece + (k + i + kTileRows) * kTileRows);
    }
  }
  for (; k < depth; ++k) {
    for (int64_t i = 0; i < kTileRows; ++i) piece[k * kTileRows + i] = ToF32(a[i * stride + k]);
  }
}
// All whole pieces.
template <typename T>
void TransposePieces(const T* a, int64_t stride, int64_t depth, int64_t rows, float* pieces) {
  Multiversion([=]() ZG_VERSION {
    for (int64_t row = 0; row + kTileRows <= rows; row += kTileRows) {
      TransposePieceOf(a + row * stride, stride, depth, pieces + row * depth);
    }
  });
}

// Copies kColumns columns of a into pieces, few enough that the pieces do not evict each other from
// the cache.
constexpr int64_t kColumnGroup = 4 * kTileRows;
template <int64_t kColumns, typename T>
ZG_INLINE void CopyPiecesOf(const T* a, int64_t stride, int64_t depth, float* pieces) {
  for (int64_t k = 0; k < depth; ++k) {
    const T* const row = a + k * stride;
    for (int64_t i = 0; i < kColumns; i += kLanes) {  // two pieces
      PrefetchDistant(row + kRowsAhead * stride + i);
      float both[kLanes];
      StoreLanes(LoadLanes(row + i), both);
      float* const target = pieces + i * depth + k * kTileRows;
      std::memcpy(target, both, kTileRows * sizeof(float));
      std::memcpy(target + kTileRows * depth, both + kTileRows, kTileRows * sizeof(float));
    }
  }
}
// All whole vectors of columns.
template <typename T>
ZG_INLINE void CopyAllPiecesOf(const T* a, int64_t stride, int64_t depth, int64_t columns,
                               float* pieces) {
  int64_t i = 0;
  for (; i + kColumnGroup <= columns; i += kColumnGroup) {
    CopyPiecesOf<kColumnGroup>(a + i, stride, depth, pieces + i * depth);
  }
  for (; i + kLanes <= columns; i += kLanes) {
    CopyPiecesOf<kLanes>(a + i, stride, depth, pieces + i * depth);
  }
}
template <typename T>
void CopyPieces(const T* a, int64_t stride, int64_t depth, int64_t columns, float* pieces) {
  Multiversion([=]() ZG_VERSION { CopyAllPiecesOf(a, stride, depth, columns, pieces); });
}

}  // namespace

template <typename T>
void PackPanels(const T* b, int64_t stride, int64_t depth, int64_t columns, float* panels) {
  SpreadRows(b, stride, depth, columns, panels);
  const int64_t whole = columns / kPanelUnit * kPanelUnit;
  if (whole == columns) return;
  int64_t last = 0;
  while (last + PanelWidth(columns - last) < columns) last += PanelWidth(columns - last);
  const int64_t width = PanelWidth(columns - last);
  for (int64_t k = 0; k < depth; ++k) {
    float* const row = panels + last * depth + k * width;
    for (int64_t j = whole; j < last + width; ++j) {
      row[j - last] = j < columns ? ToF32(b[k * stride + j]) : 0.0f;
    }
  }
}

template <typename T>
void PackTransposedPanels(const T* b, int64_t stride, int64_t next, int64_t depth, int64_t columns,
                          float* panels) {
  for (int64_t first = 0, width; first < columns; first += width) {
    width = PanelWidth(columns - first);
    for (int64_t j = first; j < first + width; j += kPanelUnit) {
      float* const strip = panels + first * depth + (j - first);
      if (columns - j >= kPanelUnit) {
        TransposeStrip(b + j * stride, stride, next, depth, width, strip);
        continue;
      }
      for (int64_t k = 0; k < depth; ++k) {
        for (int64_t i = 0; i < kPanelUnit; ++i) {
          strip[k * width + i] = j + i < columns ? ToF32(b[(j + i) * stride + k]) : 0.0f;
        }
      }
    }
  }
}

template <typename T>
void PackPieces(const T* a, int64_t stride, int64_t depth, int64_t rows, float* pieces) {
  TransposePieces(a, stride, depth, rows, pieces);
  const int64_t row = rows / kTileRows * kTileRows;
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t i = row; i < rows; ++i) {
      pieces[row * depth + k * kTileRows + (i - row)] = ToF32(a[i * stride + k]);
    }
  }
}

template <typename T>
void PackTransposedPieces(const T* a, int64_t stride, int64_t depth, int64_t rows, float* pieces) {
  CopyPieces(a, stride, depth, rows, pieces);
  for (int64_t row = rows / kLanes * kLanes; row < rows; row += kTileRows) {
    const int64_t count = std::min(kTileRows, rows - row);
    for (int64_t k = 0; k < depth; ++k) {
      float* const piece = pieces + row * depth + k * kTileRows;
      for (int64_t i = 0; i < count; ++i) piece[i] = ToF32(a[k * stride + row + i]);
    }
  }
}

template void PackPanels(const float*, int64_t, int64_t, int64_t, float*);
template void PackTransposedPanels(const float*, int64_t, int64_t, int64_t, int64_t, float*);
template void PackPieces(const float*, int64_t, int64_t, int64_t, float*);
template void PackTransposedPieces(const float*, int64_t, int64_t, int64_t, float*);
template void PackPanels(const BFloat16*, int64_t, int64_t, int64_t, float*);
template void PackTransposedPanels(const BFloat16*, int64_t, int64_t, int64_t, int64_t, float*);
template void PackPieces(const BFloat16*, int64_t, int64_t, int64_t, float*);
template void PackTransposedPieces(const BFloat16*, int64_t, int64_t, int64_t, float*);
template void PackPanels(const Float16*, int64_t, int64_t, int64_t, float*);
template void PackTransposedPanels(const Float16*, int64_t, int64_t, int64_t, int64_t, float*);
template void PackPieces(const Float16*, int64_t, int64_t, int64_t, float*);
template void PackTransposedPieces(const Float16*, int64_t, int64_t, int64_t, float*);

}  // namespace zg
