#include "framework/kernels/cpu/gemm_pairs.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "framework/base/instruction_set.h"
#include "framework/kernels/cpu/gemm_columns.h"
#include "framework/kernels/cpu/gemm_pack.h"
#include "framework/kernels/cpu/gemm_panels.h"
#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/prefetch.h"

namespace zg {
namespace {

uint32_t Pair(BFloat16 low, BFloat16 high) {
  return low.bits | static_cast<uint32_t>(high.bits) << 16;
}

// Two rows of a matrix stored by rows, as pairs of their elements; the second row is missing after
// an odd depth.
struct RowPair {
  const BFloat16* low;
  const BFloat16* high;

  RowPair(const BFloat16* matrix, int64_t stride, int64_t depth, int64_t pair)
      : low(matrix + 2 * pair * stride), high(2 * pair + 1 < depth ? low + stride : nullptr) {}

  // The sixteen pairs from element `begin` on, zeros from element `end` on.
  ZG_INLINE LaneBits Load(int64_t begin, int64_t end) const {
    const int64_t count = std::min<int64_t>(kLanes, end - begin);
    const LaneBits lows = LoadHalves(low + begin, count);
    return high == nullptr ? lows : lows | LoadHalves(high + begin, count) << 16;
  }

 private:
  static ZG_INLINE LaneBits LoadHalves(const BFloat16* data, int64_t count) {
    if (count == kLanes) return LoadHalfBits(data);
    BFloat16 lanes[kLanes] = {};
    for (int64_t i = 0; i < count; ++i) lanes[i] = data[i];
    return LoadHalfBits(lanes);
  }
};

// The pair `pair` of a run of `depth` consecutive elements.
uint32_t PairAt(const BFloat16* run, int64_t depth, int64_t pair) {
  const BFloat16 high = 2 * pair + 1 < depth ? run[2 * pair + 1] : BFloat16{0};
  return Pair(run[2 * pair], high);
}

// Consecutive elements are pairs already if rows begin at whole pairs: they are 32-bit numbers,
// which the routines for f32 copy unchanged.
bool ArePairs(int64_t stride, int64_t depth) { return stride % 2 == 0 && depth % 2 == 0; }
const float* AsPairs(const BFloat16* elements) { return reinterpret_cast<const float*>(elements); }

constexpr int kFloatsPerVector = 16;

#define ZG_PAIRS __attribute__((target("avx512f,avx512vl,avx512bw,avx512bf16")))

__mmask16 ColumnsOf(const GemmTile& tile, int vector) {
  const int64_t left = tile.columns - vector * kFloatsPerVector;
  return static_cast<__mmask16>(left >= kFloatsPerVector ? 0xffff : left > 0 ? (1 << left) - 1 : 0);
}

template <int kRows, int kVectors>
ZG_PAIRS void Tile(const GemmTile& tile) {
  __m512 sums[kRows][kVectors];
  for (int v = 0; v < kVectors; ++v) {
    const __mmask16 columns = ColumnsOf(tile, v);
    for (int i = 0; i < kRows; ++i) {
      if (tile.start != nullptr) {
        sums[i][v] = _mm512_loadu_ps(tile.start + v * kFloatsPerVector);
      } else if (tile.continues) {
        sums[i][v] =
            _mm512_maskz_loadu_ps(columns, tile.c + i * tile.c_stride + v * kFloatsPerVector);
      } else {
        sums[i][v] = _mm512_setzero_ps();
      }
    }
  }
  const float* a = tile.a;
  const float* b = tile.b;
  for (int64_t pair = 0; pair < tile.depth; ++pair) {
    __m512bh row[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      row[v] = (__m512bh)_mm512_loadu_ps(b + v * kFloatsPerVector);
      _mm_prefetch(b + 16 * tile.b_stride + v * kFloatsPerVector, _MM_HINT_T0);
    }
    for (int i = 0; i < kRows; ++i) {
      const __m512bh element = (__m512bh)_mm512_set1_ps(a[i]);
      for (int v = 0; v < kVectors; ++v) {
        sums[i][v] = _mm512_dpbf16_ps(sums[i][v], element, row[v]);
      }
    }
    a += tile.a_stride;
    b += tile.b_stride;
  }
  for (int v = 0; v < kVectors; ++v) {
    const __mmask16 columns = ColumnsOf(tile, v);
    for (int i = 0; i < kRows; ++i) {
      _mm512_mask_storeu_ps(tile.c + i * tile.c_stride + v * kFloatsPerVector, columns, sums[i][v]);
    }
  }
}

using TileFunction = void (*)(const GemmTile& tile);

template <int kVectors>
constexpr TileFunction kTiles[kTileRows] = {Tile<1, kVectors>, Tile<2, kVectors>, Tile<3, kVectors>,
                                            Tile<4, kVectors>, Tile<5, kVectors>, Tile<6, kVectors>,
                                            Tile<7, kVectors>, Tile<8, kVectors>};

void PackA(const StoredBlock& block, float* pieces) {
  const auto* const data = static_cast<const BFloat16*>(block.data);
  if (block.runs_along_k) {
    PackPiecePairs(data, block.stride, block.depth, block.count, pieces);
  } else {
    PackTransposedPiecePairs(data, block.stride, block.depth, block.count, pieces);
  }
}

void PackB(const StoredBlock& block, float* panels) {
  const auto* const data = static_cast<const BFloat16*>(block.data);
  if (block.runs_along_k) {
    PackTransposedPanelPairs(data, block.stride, kPanelUnit * block.stride, block.depth,
                             block.count, panels);
  } else {
    PackPanelPairs(data, block.stride, block.depth, block.count, panels);
  }
}

void Multiply(const BlockProduct& product) {
  MultiplyPanels<ComputePairTile>(product, NumPairs(product.depth));
}

void MultiplyColumns(const ColumnsProduct& product) {
  const StoredBlock& b = product.b;
  const int64_t done = ArePairs(b.stride, b.depth) ? MultiplyPairColumnsInRegisters(product) : 0;
  MultiplyShortPanels<ComputePairTile>(product.From<BFloat16>(done), 2,
                                       /*packing_prefetches=*/true, PackTransposedPanelPairs);
}

constexpr GemmMethod MakePairMethod() {
  GemmMethod method = {};
  method.row_unit = kTileRows;
  method.column_unit = kPanelUnit;
  method.depth_unit = 2;
  method.packed_k = 2;
  method.max_rows = 256;
  method.max_columns = 384;
  method.max_depth = 768;  // twice that of floats, in the same number of bytes
  method.max_b_size = method.max_columns * method.max_depth / method.packed_k;
  method.sum_columns = method.max_columns;
  method.pack_a = PackA;
  method.pack_b = PackB;
  method.multiply = Multiply;
  method.pack_few_rows = PackA;
  method.multiply_columns = MultiplyColumns;
  method.round = RoundSums<DType::kBF16>;
  return method;
}

constexpr GemmMethod kPairMethod = MakePairMethod();

}  // namespace

bool HasPairProducts() {
  return MayUse(InstructionSet::kAvx512Bf16) && __builtin_cpu_supports("avx512bf16") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0;
}

bool PairProductsAreFast() { return HasPairProducts() && __builtin_cpu_is("intel") == 0; }

ZG_PAIRS void PackPanelPairs(const BFloat16* b, int64_t stride, int64_t depth, int64_t columns,
                             float* panels) {
  for (int64_t pair = 0; pair < NumPairs(depth); ++pair) {
    const RowPair rows(b, stride, depth, pair);
    for (int64_t first = 0, width; first < columns; first += width) {
      width = PanelWidth(columns - first);
      float* const row = panels + first * NumPairs(depth) + pair * width;
      for (int64_t j = 0; j < width; j += kLanes) {
        PrefetchDistant(rows.low + kRowsAhead * stride + first + j);
        PrefetchDistant(rows.low + (kRowsAhead + 1) * stride + first + j);
        const LaneBits pairs = rows.Load(first + j, columns);
        std::memcpy(row + j, &pairs, sizeof(pairs));
      }
    }
  }
}

void PackTransposedPanelPairs(const BFloat16* b, int64_t stride, int64_t next, int64_t depth,
                              int64_t columns, float* panels) {
  if (ArePairs(stride, depth)) {
    return PackTransposedPanels(AsPairs(b), stride / 2, next / 2, depth / 2, columns, panels);
  }
  auto* const pairs = reinterpret_cast<uint32_t*>(panels);
  for (int64_t first = 0, width; first < columns; first += width) {
    width = PanelWidth(columns - first);
    for (int64_t pair = 0; pair < NumPairs(depth); ++pair) {
      uint32_t* const row = pairs + first * NumPairs(depth) + pair * width;
      for (int64_t j = 0; j < width; ++j) {
        row[j] = first + j < columns ? PairAt(b + (first + j) * stride, depth, pair) : 0;
      }
    }
  }
}

void PackPiecePairs(const BFloat16* a, int64_t stride, int64_t depth, int64_t rows, float* pieces) {
  if (ArePairs(stride, depth)) {
    return PackPieces(AsPairs(a), stride / 2, depth / 2, rows, pieces);
  }
  auto* const pairs = reinterpret_cast<uint32_t*>(pieces);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t piece = row / kTileRows * kTileRows;
    for (int64_t pair = 0; pair < NumPairs(depth); ++pair) {
      pairs[piece * NumPairs(depth) + pair * kTileRows + (row - piece)] =
          PairAt(a + row * stride, depth, pair);
    }
  }
}

ZG_PAIRS void PackTransposedPiecePairs(const BFloat16* a, int64_t stride, int64_t depth,
                                       int64_t rows, float* pieces) {
  const int64_t piece = NumPairs(depth) * kTileRows;
  // Processes a few columns at a time, whose pieces do not evict each other from the cache.
  constexpr int64_t kGroup = 4 * kTileRows;
  for (int64_t first = 0; first < rows; first += kGroup) {
    for (int64_t pair = 0; pair < NumPairs(depth); ++pair) {
      const RowPair columns(a, stride, depth, pair);
      for (int64_t row = first; row < std::min(rows, first + kGroup); row += 2 * kTileRows) {
        const LaneBits pairs = columns.Load(row, rows);
        float* const target = pieces + row / kTileRows * piece + pair * kTileRows;
        std::memcpy(target, &pairs, kTileRows * sizeof(float));
        if (row + kTileRows >= rows) continue;
        std::memcpy(target + piece, reinterpret_cast<const char*>(&pairs) + sizeof(pairs) / 2,
                    kTileRows * sizeof(float));
      }
    }
  }
}

void ComputePairTile(const GemmTile& tile, int64_t rows, int64_t width) {
  static constexpr const TileFunction* kByWidth[] = {kTiles<1>, kTiles<2>, kTiles<3>};
  kByWidth[width / kPanelUnit - 1][rows - 1](tile);
}

const GemmMethod& PairMethod() { return kPairMethod; }

}  // namespace zg
