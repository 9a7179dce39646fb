#include "framework/kernels/cpu/gemm_tile.h"

#include <cstddef>

#include "framework/base/check.h"

// Highway compiles the part up to HWY_AFTER_NAMESPACE once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/kernels/cpu/gemm_tile.cc"  // NOLINT
// Targets that would do nothing better than the one below them.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
// foreach_target.h has to come first.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace zg::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::CappedTag<float, kPanelColumns>;
using FloatVector = hn::Vec<Floats>;

// As many accumulators as the registers hold beside a row of B and an element of A.
constexpr int kLanesPerVector = static_cast<int>(hn::MaxLanes(Floats()));
constexpr int kVectors = static_cast<int>(kPanelColumns) / kLanesPerVector;
constexpr int kRegisters = kLanesPerVector == 16 ? 32 : 16;
constexpr int kRows = kVectors >= 8 ? 1
                      : (kRegisters - kVectors) / kVectors > 14
                          ? 14
                          : (kRegisters - kVectors) / kVectors;

template <int kTileRows, int64_t kRowStride, int64_t kDepthStride>
void Tile(const GemmTile& tile) {
  const Floats floats;
  const int64_t depth = tile.depth;
  const float* HWY_RESTRICT a = tile.a;
  const float* HWY_RESTRICT b = tile.b;
  HWY_ALIGN float partial[kTileRows * kPanelColumns];
  float* c = tile.c;
  int64_t c_stride = tile.c_stride;
  const bool whole = tile.columns == kPanelColumns;
  if (!whole) {
    if (tile.continues) {
      for (int i = 0; i < kTileRows; ++i) {
        for (int64_t j = 0; j < kPanelColumns; ++j) {
          partial[i * kPanelColumns + j] = j < tile.columns ? c[i * c_stride + j] : 0.0f;
        }
      }
    }
    c = partial;
    c_stride = kPanelColumns;
  }

  FloatVector sums[kTileRows][kVectors];
  if (tile.start != nullptr) {
    for (int v = 0; v < kVectors; ++v) {
      const FloatVector start = hn::LoadU(floats, tile.start + v * kLanesPerVector);
      for (int i = 0; i < kTileRows; ++i) sums[i][v] = start;
    }
  } else if (tile.continues) {
    for (int i = 0; i < kTileRows; ++i) {
      for (int v = 0; v < kVectors; ++v) {
        sums[i][v] = hn::LoadU(floats, c + i * c_stride + v * kLanesPerVector);
      }
    }
  } else {
    for (int i = 0; i < kTileRows; ++i) {
      for (int v = 0; v < kVectors; ++v) sums[i][v] = hn::Zero(floats);
      // They are stored at the end; fetch them meanwhile.
      hwy::Prefetch(c + i * c_stride);
      hwy::Prefetch(c + i * c_stride + kPanelColumns / 2);
    }
  }

  for (int64_t k = 0; k < depth; ++k) {
    FloatVector row[kVectors];
    for (int v = 0; v < kVectors; ++v) row[v] = hn::Load(floats, b + v * kLanesPerVector);
    for (int i = 0; i < kTileRows; ++i) {
      const FloatVector element = hn::Set(floats, a[i * kRowStride]);
      for (int v = 0; v < kVectors; ++v) {
        sums[i][v] = hn::MulAdd(element, row[v], sums[i][v]);
      }
    }
    a += kDepthStride;
    b += kPanelColumns;
  }

  for (int i = 0; i < kTileRows; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(sums[i][v], floats, c + i * c_stride + v * kLanesPerVector);
    }
  }
  if (!whole) {
    for (int i = 0; i < kTileRows; ++i) {
      for (int64_t j = 0; j < tile.columns; ++j) {
        tile.c[i * tile.c_stride + j] = partial[i * kPanelColumns + j];
      }
    }
  }
}

int64_t MaxTileRowsImpl() { return kRows; }

template <int64_t kRowStride, int64_t kDepthStride>
GemmTileFunction TileOfRows(int64_t rows) {
  static constexpr GemmTileFunction kTiles[] = {
    Tile<1, kRowStride, kDepthStride>,
#if HWY_TARGET != HWY_SSE2 && HWY_TARGET != HWY_SCALAR
    Tile<2, kRowStride, kDepthStride>,
    Tile<3, kRowStride, kDepthStride>,
#endif
#if HWY_TARGET == HWY_AVX3
    Tile<4, kRowStride, kDepthStride>,
    Tile<5, kRowStride, kDepthStride>,
    Tile<6, kRowStride, kDepthStride>,
    Tile<7, kRowStride, kDepthStride>,
    Tile<8, kRowStride, kDepthStride>,
    Tile<9, kRowStride, kDepthStride>,
    Tile<10, kRowStride, kDepthStride>,
    Tile<11, kRowStride, kDepthStride>,
    Tile<12, kRowStride, kDepthStride>,
    Tile<13, kRowStride, kDepthStride>,
    Tile<14, kRowStride, kDepthStride>,
#endif
  };
  static_assert(sizeof(kTiles) / sizeof(kTiles[0]) == kRows);
  return kTiles[rows - 1];
}

GemmTileFunction FindGemmTileImpl(ALayout layout, int64_t rows) {
  return layout == ALayout::kRows ? TileOfRows<kPackedRowStride, 1>(rows)
                                  : TileOfRows<1, kPackedColumnStride>(rows);
}

}  // namespace zg::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zg {

HWY_EXPORT(MaxTileRowsImpl);
HWY_EXPORT(FindGemmTileImpl);

int64_t MaxTileRows() { return HWY_DYNAMIC_DISPATCH(MaxTileRowsImpl)(); }

GemmTileFunction FindGemmTile(ALayout layout, int64_t rows) {
  ZG_CHECK(rows >= 1 && rows <= MaxTileRows(), "a tile of {} rows", rows);
  return HWY_DYNAMIC_DISPATCH(FindGemmTileImpl)(layout, rows);
}

}  // namespace zg
#endif  // HWY_ONCE
