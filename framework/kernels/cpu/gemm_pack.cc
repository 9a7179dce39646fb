#include "framework/kernels/cpu/gemm_pack.h"

#include <algorithm>
#include <cstring>

#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"

namespace zg {
namespace {

static_assert(kPanelUnit == kLanes && kTileRows == kLanes / 2);

// Exchanges the off-diagonal quarters of all squares of 2 * kHalf rows and columns.
template <int kHalf, int kRows>
ZG_INLINE void ExchangeQuarters(Lanes (&rows)[kRows]) {
  SignedLanes low;
  SignedLanes high;
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

// Sixteen columns of a panel, from sixteen columns of b.
ZG_MULTIVERSION void TransposeStrip(const float* b, int64_t stride, int64_t depth, int64_t width,
                                    float* strip) {
  int64_t k = 0;
  for (; k + kLanes <= depth; k += kLanes) {
    Lanes rows[kLanes];
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) rows[i] = LoadLanes(b + i * stride + k);
    ExchangeQuarters<8>(rows);
    ExchangeQuarters<4>(rows);
    ExchangeQuarters<2>(rows);
    ExchangeQuarters<1>(rows);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) StoreLanes(rows[i], strip + (k + i) * width);
  }
  for (; k < depth; ++k) {
    for (int i = 0; i < kLanes; ++i) strip[k * width + i] = b[i * stride + k];
  }
}

ZG_MULTIVERSION void CopyStrip(const float* b, int64_t stride, int64_t depth, int64_t width,
                               float* strip) {
  for (int64_t k = 0; k < depth; ++k) StoreLanes(LoadLanes(b + k * stride), strip + k * width);
}

// Eight rows of a; two k fill one vector.
ZG_MULTIVERSION void TransposeEightRows(const float* a, int64_t stride, int64_t depth,
                                        float* piece) {
  // After the exchanges vector i holds the eight elements of k = i, then those of k = i + 8.
  int64_t k = 0;
  for (; k + kLanes <= depth; k += kLanes) {
    Lanes rows[kTileRows];
#pragma GCC unroll 8
    for (int i = 0; i < kTileRows; ++i) rows[i] = LoadLanes(a + i * stride + k);
    ExchangeQuarters<4>(rows);
    ExchangeQuarters<2>(rows);
    ExchangeQuarters<1>(rows);
#pragma GCC unroll 8
    for (int i = 0; i < kTileRows; ++i) {
      std::memcpy(piece + (k + i) * kTileRows, &rows[i], kTileRows * sizeof(float));
      std::memcpy(piece + (k + i + kTileRows) * kTileRows,
                  reinterpret_cast<const char*>(&rows[i]) + kTileRows * sizeof(float),
                  kTileRows * sizeof(float));
    }
  }
  for (; k < depth; ++k) {
    for (int64_t i = 0; i < kTileRows; ++i) piece[k * kTileRows + i] = a[i * stride + k];
  }
}

ZG_MULTIVERSION void CopyEightColumns(const float* a, int64_t stride, int64_t depth, float* piece) {
  for (int64_t k = 0; k < depth; ++k) {
    std::memcpy(piece + k * kTileRows, a + k * stride, kTileRows * sizeof(float));
  }
}

}  // namespace

void PackPanel(const float* b, int64_t stride, int64_t depth, int64_t columns, int64_t width,
               float* panel) {
  for (int64_t begin = 0; begin < width; begin += kPanelUnit) {
    if (columns - begin >= kPanelUnit) {
      CopyStrip(b + begin, stride, depth, width, panel + begin);
      continue;
    }
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t j = begin; j < begin + kPanelUnit; ++j) {
        panel[k * width + j] = j < columns ? b[k * stride + j] : 0.0f;
      }
    }
  }
}

void PackTransposedPanel(const float* b, int64_t stride, int64_t depth, int64_t columns,
                         int64_t width, float* panel) {
  for (int64_t begin = 0; begin < width; begin += kPanelUnit) {
    if (columns - begin >= kPanelUnit) {
      TransposeStrip(b + begin * stride, stride, depth, width, panel + begin);
      continue;
    }
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t j = begin; j < begin + kPanelUnit; ++j) {
        panel[k * width + j] = j < columns ? b[j * stride + k] : 0.0f;
      }
    }
  }
}

void PackPiece(const float* a, int64_t stride, int64_t depth, int64_t rows, float* piece) {
  if (rows == kTileRows) return TransposeEightRows(a, stride, depth, piece);
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t i = 0; i < rows; ++i) piece[k * kTileRows + i] = a[i * stride + k];
  }
}

void PackTransposedPiece(const float* a, int64_t stride, int64_t depth, int64_t rows,
                         float* piece) {
  if (rows == kTileRows) return CopyEightColumns(a, stride, depth, piece);
  for (int64_t k = 0; k < depth; ++k) {
    std::copy_n(a + k * stride, rows, piece + k * kTileRows);
  }
}

}  // namespace zg
