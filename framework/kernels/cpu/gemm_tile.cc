#include "framework/kernels/cpu/gemm_tile.h"

#include <algorithm>
#include <cstring>

// Highway compiles the part up to HWY_AFTER_NAMESPACE once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/kernels/cpu/gemm_tile.cc"  // NOLINT
// Targets that would not be better than the next one here.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
// foreach_target.h must be included first.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "framework/base/instruction_set.h"
#include "framework/kernels/cpu/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace zg::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::CappedTag<float, kPanelUnit>;
using FloatVector = hn::Vec<Floats>;

constexpr int kLanesPerVector = static_cast<int>(hn::MaxLanes(Floats()));
constexpr int64_t kPrefetchDepth = 16;  // distance in k at which B is prefetched

// a * b + c with one rounding, for one element, if the processor has no such instruction.
HWY_INLINE float FusedMultiplyAdd(float a, float b, float c) {
  const double product = static_cast<double>(a) * b;  // exact
  const double sum = product + c;
  const double rounded_c = sum - product;
  const double lost = (product - (sum - rounded_c)) + (c - rounded_c);  // exact: Knuth's TwoSum
  if (!(lost < 0 || lost > 0)) return static_cast<float>(sum);
  // If a sum in double is rounded to odd, it can be rounded again, to float (Boldo and Melquiond
  // 2008, "Emulation of FMA and correctly rounded sums").
  int64_t bits;
  std::memcpy(&bits, &sum, sizeof(bits));
  if (bits % 2 == 0) bits += (lost > 0) == (sum > 0) ? 1 : -1;
  double odd;
  std::memcpy(&odd, &bits, sizeof(odd));
  return static_cast<float>(odd);
}

HWY_INLINE FloatVector FusedMultiplyAdd(Floats floats, FloatVector a, FloatVector b,
                                        FloatVector c) {
  if constexpr (HWY_TARGET <= HWY_AVX2) {
    return hn::MulAdd(a, b, c);
  } else {
    HWY_ALIGN float as[kLanesPerVector], bs[kLanesPerVector], cs[kLanesPerVector];
    hn::Store(a, floats, as);
    hn::Store(b, floats, bs);
    hn::Store(c, floats, cs);
    for (int i = 0; i < kLanesPerVector; ++i) cs[i] = FusedMultiplyAdd(as[i], bs[i], cs[i]);
    return hn::Load(floats, cs);
  }
}

// To the sums of some columns.
void AddEarlier(const GemmTile& tile, int rows, int64_t stride, float* sums) {
  for (int earlier = 0; earlier < tile.part->num_earlier; ++earlier) {
    const BlockSums& added = tile.part->earlier[earlier];
    const float* const from = added.At(tile.row, tile.column);
    for (int i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < tile.columns; ++j) sums[i * stride + j] += from[i * added.stride + j];
    }
  }
}

HWY_INLINE void PrefetchColumns(const NextColumns& columns, int64_t row) {
  const float* column = columns.begin + row * columns.count * columns.stride;
  for (int64_t i = 0; i < columns.count; ++i, column += columns.stride) {
    PrefetchDistantRow(column, columns.depth);
  }
}

// How rows of B are prefetched: those of packed panels, which are in the second-level cache, and those
// that are read in place.
struct PackedRows {
  static HWY_INLINE void Prefetch(const float* b) { hwy::Prefetch(b); }
};
struct RowsInPlace {
  static HWY_INLINE void Prefetch(const float* b) { PrefetchDistant(b); }
};

// Adds the products with elements [k, end) of the columns.
template <typename RowsOfB, int kRows, int kVectors>
HWY_INLINE void MultiplyRows(const GemmTile& tile, int64_t k, int64_t end,
                             FloatVector (&sums)[kRows][kVectors]) {
  const Floats floats;
  const float* HWY_RESTRICT a = tile.a + k * tile.a_stride;
  const float* HWY_RESTRICT b = tile.b + k * tile.b_stride;
  for (; k < end; ++k) {
    FloatVector row[kVectors];
    for (int v = 0; v < kVectors; ++v) row[v] = hn::LoadU(floats, b + v * kLanesPerVector);
    for (int64_t j = 0; j < kVectors * kLanesPerVector; j += kLineFloats) {
      RowsOfB::Prefetch(b + kPrefetchDepth * tile.b_stride + j);
    }
    for (int i = 0; i < kRows; ++i) {
      const FloatVector element = hn::Set(floats, a[i]);
      for (int v = 0; v < kVectors; ++v) {
        sums[i][v] = FusedMultiplyAdd(floats, element, row[v], sums[i][v]);
      }
    }
    a += tile.a_stride;
    b += tile.b_stride;
  }
}

// The part of a tile that fits into the registers.
template <int kRows, int kVectors>
HWY_INLINE void Block(const GemmTile& tile) {
  constexpr int64_t kWidth = kVectors * kLanesPerVector;
  const Floats floats;
  HWY_ALIGN static constexpr float kZeros[kMaxPanelWidth] = {};
  HWY_ALIGN float partial[kRows * kMaxPanelWidth];
  float* c = tile.c;
  int64_t c_stride = tile.c_stride;
  const float* begun = c;
  int64_t begun_stride = c_stride;
  if (tile.continues && tile.part != nullptr) {
    begun = tile.part->begun.At(tile.row, tile.column);
    begun_stride = tile.part->begun.stride;
  }
  const bool whole = tile.columns == kWidth;
  if (!whole) {
    for (int i = 0; tile.continues && i < kRows; ++i) {
      std::copy_n(begun + i * begun_stride, tile.columns, partial + i * kWidth);
      std::fill_n(partial + i * kWidth + tile.columns, kWidth - tile.columns, 0.0f);
    }
    c = partial;
    c_stride = kWidth;
    begun = partial;
    begun_stride = kWidth;
  }

  const float* start = kZeros;
  int64_t start_stride = 0;
  if (tile.start != nullptr) {
    start = tile.start;
  } else if (tile.continues) {
    start = begun;
    start_stride = begun_stride;
  }
  FloatVector sums[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      sums[i][v] = hn::LoadU(floats, start + i * start_stride + v * kLanesPerVector);
    }
  }

  const float* next_b = tile.next_b != nullptr ? tile.next_b : tile.b;
  int64_t k = 0;
  const bool prefetches =
      tile.next_c != nullptr || tile.next_b != nullptr || tile.next_columns.begin != nullptr;
  const int num_sections = prefetches ? kRows : 1;
  for (int section = 0; section < num_sections; ++section) {
    for (int64_t j = 0; tile.next_c != nullptr && j < kWidth; j += kLineFloats) {
      hwy::Prefetch(tile.next_c + section * tile.c_stride + j);
    }
    for (int64_t line = 0; line < tile.next_b_lines; ++line) {
      hwy::Prefetch(next_b);
      next_b += kLineFloats;
    }
    if (tile.next_columns.begin != nullptr) PrefetchColumns(tile.next_columns, section);
    const int64_t end = tile.depth * (section + 1) / num_sections;
    if (tile.b_stride == kWidth) {
      MultiplyRows<PackedRows>(tile, k, end, sums);
    } else {
      MultiplyRows<RowsInPlace>(tile, k, end, sums);
    }
    k = end;
  }

  if (whole && tile.part != nullptr) {
    for (int earlier = 0; earlier < tile.part->num_earlier; ++earlier) {
      const BlockSums& added = tile.part->earlier[earlier];
      const float* const from = added.At(tile.row, tile.column);
      for (int i = 0; i < kRows; ++i) {
        for (int v = 0; v < kVectors; ++v) {
          const float* const values = from + i * added.stride + v * kLanesPerVector;
          sums[i][v] = hn::Add(hn::LoadU(floats, values), sums[i][v]);
        }
      }
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      float* const to = c + i * c_stride + v * kLanesPerVector;
      if (tile.streams) {
        hn::Stream(sums[i][v], floats, to);
      } else {
        hn::StoreU(sums[i][v], floats, to);
      }
    }
  }
  if (!whole) {
    if (tile.part != nullptr) AddEarlier(tile, kRows, kWidth, partial);
    for (int i = 0; i < kRows; ++i) {
      std::copy_n(partial + i * kWidth, tile.columns, tile.c + i * tile.c_stride);
    }
  }
}

using TileFunction = void (*)(const GemmTile& tile);

// All rows at once where there are 32 wide registers; else in blocks of as many as fit.
template <int kRows, int kUnits>
void Tile(const GemmTile& tile) {
  constexpr int kVectors = kUnits * static_cast<int>(kPanelUnit) / kLanesPerVector;
  constexpr int kBlockRows =
      kLanesPerVector == 16 ? kRows : std::min(kRows, std::max(1, 12 / kVectors));
  GemmTile block = tile;
  for (int row = 0; row + kBlockRows <= kRows; row += kBlockRows) {
    Block<kBlockRows, kVectors>(block);
    block.a += kBlockRows;
    block.c += kBlockRows * tile.c_stride;
    block.row += kBlockRows;
    if (tile.next_c != nullptr) block.next_c += kBlockRows * tile.c_stride;
    if (tile.next_b != nullptr) {
      block.next_b += kBlockRows * tile.next_b_lines * kLineFloats;
    }
    if (tile.next_columns.begin != nullptr) block.next_columns.Advance(kBlockRows);
  }
  constexpr int kRest = kRows % kBlockRows;
  if constexpr (kRest > 0) Block<kRest, kVectors>(block);
}

template <int kUnits>
constexpr TileFunction kTiles[kTileRows] = {Tile<1, kUnits>, Tile<2, kUnits>, Tile<3, kUnits>,
                                            Tile<4, kUnits>, Tile<5, kUnits>, Tile<6, kUnits>,
                                            Tile<7, kUnits>, Tile<8, kUnits>};

void ComputeTileImpl(const GemmTile& tile, int64_t rows, int64_t width) {
  static constexpr const TileFunction* kByWidth[] = {kTiles<1>, kTiles<2>, kTiles<3>};
  kByWidth[width / kPanelUnit - 1][rows - 1](tile);
}

}  // namespace zg::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zg {

HWY_EXPORT(ComputeTileImpl);

void ComputeTile(const GemmTile& tile, int64_t rows, int64_t width) {
  ZG_HWY_DISPATCH(ComputeTileImpl)(tile, rows, width);
}

}  // namespace zg
#endif  // HWY_ONCE
