// Packs blocks of matrices into the layouts of gemm_tile.h, in f32 whatever the dtype of the
// matrix.
#pragma once

#include <cstdint>

#include "framework/kernels/cpu/gemm_tile.h"

namespace zg {

// The width of the first panel for `columns` remaining columns: 48, as long as no panel of 16 is
// left over, whose tiles would be too small to keep the processor busy.
constexpr int64_t PanelWidth(int64_t columns) {
  const int64_t units = (columns + kPanelUnit - 1) / kPanelUnit;
  return (units == 4 ? 2 : units < 3 ? units : 3) * kPanelUnit;
}

// Rows that lie across a packed block are prefetched so many rows ahead.
inline constexpr int64_t kRowsAhead = 8;

// T is float, BFloat16 or Float16.

// Packs a block of B, panel after panel, with zeros in the columns that pad the last panel. The
// panel of column j begins at j * depth, and `panels` is aligned to 64 bytes. `b` is stored by
// rows: element (k, j) at k * stride + j.
template <typename T>
void PackPanels(const T* b, int64_t stride, int64_t depth, int64_t columns, float* panels);
// `b` is stored by columns: element (k, j) at j * stride + k. What lies `next` elements ahead is
// prefetched.
template <typename T>
void PackTransposedPanels(const T* b, int64_t stride, int64_t next, int64_t depth, int64_t columns,
                          float* panels);

// Packs a block of A, piece after piece of kTileRows rows; the piece of row i begins at i * depth.
// The padding of the last piece is undefined. `a` is stored by rows: element (i, k) at i * stride +
// k.
template <typename T>
void PackPieces(const T* a, int64_t stride, int64_t depth, int64_t rows, float* pieces);
// `a` is stored by columns: element (i, k) at k * stride + i.
template <typename T>
void PackTransposedPieces(const T* a, int64_t stride, int64_t depth, int64_t rows, float* pieces);

}  // namespace zg
