#include "framework/kernels/cpu/gemm_pack.h"

#include <algorithm>
#include <cstring>

#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"

namespace zg {
namespace {

static_assert(kPanelColumns == 2 * kLanes && kPackedColumnStride == kLanes);

// Swaps element (i, j) of sixteen rows with (j, i): four rounds, each of which exchanges the
// off-diagonal quarters of all squares of one size.
template <int kHalf>
ZG_INLINE void ExchangeQuarters(Lanes (&rows)[kLanes]) {
  SignedLanes low;
  SignedLanes high;
  for (int i = 0; i < kLanes; ++i) {
    low[i] = (i & kHalf) == 0 ? i : i - kHalf + kLanes;
    high[i] = (i & kHalf) == 0 ? i + kHalf : i + kLanes;
  }
  for (int i = 0; i < kLanes; ++i) {
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

// Sixteen columns of a panel, from sixteen columns of b.
ZG_MULTIVERSION void TransposeStrip(const float* b, int64_t stride, int64_t depth, float* strip) {
  int64_t k = 0;
  for (; k + kLanes <= depth; k += kLanes) {
    Lanes rows[kLanes];
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) rows[i] = LoadLanes(b + i * stride + k);
    Transpose(rows);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) StoreLanes(rows[i], strip + (k + i) * kPanelColumns);
  }
  for (; k < depth; ++k) {
    for (int i = 0; i < kLanes; ++i) strip[k * kPanelColumns + i] = b[i * stride + k];
  }
}

ZG_MULTIVERSION void CopyWholePanel(const float* b, int64_t stride, int64_t depth, float* panel) {
  for (int64_t k = 0; k < depth; ++k) {
    StoreLanes(LoadLanes(b + k * stride), panel + k * kPanelColumns);
    StoreLanes(LoadLanes(b + k * stride + kLanes), panel + k * kPanelColumns + kLanes);
  }
}

ZG_MULTIVERSION void CopyLanes(const float* a, int64_t stride, int64_t depth, float* piece) {
  for (int64_t k = 0; k < depth; ++k) {
    StoreLanes(LoadLanes(a + k * stride), piece + k * kPackedColumnStride);
  }
}

}  // namespace

void PackPanel(const float* b, int64_t stride, int64_t depth, int64_t columns, float* panel) {
  if (columns == kPanelColumns) return CopyWholePanel(b, stride, depth, panel);
  for (int64_t k = 0; k < depth; ++k) {
    float* const row = panel + k * kPanelColumns;
    std::copy_n(b + k * stride, columns, row);
    std::fill(row + columns, row + kPanelColumns, 0.0f);
  }
}

void PackTransposedPanel(const float* b, int64_t stride, int64_t depth, int64_t columns,
                         float* panel) {
  for (int64_t begin = 0; begin < kPanelColumns; begin += kLanes) {
    if (columns - begin >= kLanes) {
      TransposeStrip(b + begin * stride, stride, depth, panel + begin);
      continue;
    }
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t j = begin; j < begin + kLanes; ++j) {
        panel[k * kPanelColumns + j] = j < columns ? b[j * stride + k] : 0.0f;
      }
    }
  }
}

void PackTileRows(const float* a, int64_t stride, int64_t depth, int64_t rows, float* piece) {
  for (int64_t i = 0; i < rows; ++i) {
    std::memcpy(piece + i * kPackedRowStride, a + i * stride, depth * sizeof(float));
  }
}

void PackTileColumns(const float* a, int64_t stride, int64_t depth, int64_t rows, float* piece) {
  if (rows == kPackedColumnStride) return CopyLanes(a, stride, depth, piece);
  for (int64_t k = 0; k < depth; ++k) {
    std::copy_n(a + k * stride, rows, piece + k * kPackedColumnStride);
  }
}

}  // namespace zg
