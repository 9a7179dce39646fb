// Products of packed blocks: pieces of A times panels of B (gemm_pack.h), of floats or of pairs of
// bf16 in 32 bits each (gemm_pairs.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/gemm_method.h"
#include "framework/kernels/cpu/gemm_pack.h"
#include "framework/kernels/cpu/gemm_tile.h"
#include "framework/tensor/dtype.h"

namespace zg {

// The micro-kernel that computes one tile: ComputeTile for floats, ComputePairTile for pairs of
// bf16.
using TileCompute = void (*)(const GemmTile& tile, int64_t rows, int64_t width);

// The tiles of one panel of B: the panel stays in the cache while the pieces of A are streamed.
struct PanelProduct {
  const float* pieces;   // packed, of `rows` rows
  int64_t pieces_depth;  // at least the tiles' depth
  int64_t rows;
  int64_t width;
  const float* next_c;  // C at the next panel
  GemmTile tile;        // the first rows' tile

  // The panel, at `b`, from column j of `columns` on; its depth and start are the caller's.
  void Begin(int64_t j, int64_t columns, const float* b, float* c, int64_t c_stride) {
    width = PanelWidth(columns - j);
    tile = {};
    tile.a_stride = kTileRows;
    tile.b = b;
    tile.b_stride = width;
    tile.c = c + j;
    tile.c_stride = c_stride;
    tile.columns = std::min(width, columns - j);
    next_c = tile.c + width;
  }
};

template <TileCompute kCompute>
void MultiplyPanel(const PanelProduct& product) {
  GemmTile tile = product.tile;
  for (int64_t i = 0; i < product.rows; i += kTileRows) {
    const int64_t rows = std::min(kTileRows, product.rows - i);
    tile.a = product.pieces + i * product.pieces_depth;
    tile.c = product.tile.c + i * tile.c_stride;
    tile.row = product.tile.row + i;
    if (!tile.streams) {
      tile.next_c = i + rows < product.rows ? tile.c + rows * tile.c_stride : product.next_c;
    }
    kCompute(tile, rows, product.width);
    if (tile.next_b != nullptr) tile.next_b += rows * tile.next_b_lines * kLineFloats;
    if (tile.next_columns.begin != nullptr) tile.next_columns.Advance(rows);
  }
}

// Multiplies packed blocks with `steps` floats, or pairs, in each row or column.
template <TileCompute kCompute>
void MultiplyPanels(const BlockProduct& product, int64_t steps) {
  PanelProduct panel;
  panel.pieces = product.a;
  panel.pieces_depth = steps;
  panel.rows = product.rows;
  for (int64_t j = 0; j < product.columns; j += panel.width) {
    panel.Begin(j, product.columns, product.b + j * steps, product.c, product.c_stride);
    GemmTile& tile = panel.tile;
    tile.depth = steps;
    if (product.start != nullptr) tile.start = product.start + j;
    tile.continues = product.continues;
    tile.part = product.part;
    tile.row = product.row;
    tile.column = product.column + j;
    tile.streams = product.streams && tile.columns == panel.width;
    if (!product.streams) {
      tile.next_b = tile.b + panel.width * steps;
      tile.next_b_lines = CeilDiv(panel.width * steps, kLineFloats * product.rows);
    }
    MultiplyPanel<kCompute>(panel);
  }
}

// Packs a panel of stored columns, of which `next` is prefetched (PackTransposedPanels).
template <typename T>
using PackColumns = void (*)(const T* b, int64_t stride, int64_t next, int64_t depth,
                             int64_t columns, float* panel);

// Packs columns in short panels, each of which is used while it is in the first-level cache. A panel
// has `packed_k` k in a float. What is packed next is prefetched by packing, or by `kCompute`.
template <TileCompute kCompute, typename T>
void MultiplyShortPanels(const ColumnsProduct& product, int64_t packed_k, bool packing_prefetches,
                         PackColumns<T> pack) {
  constexpr int64_t kSteps = 64;
  alignas(64) float panel[kMaxPanelWidth * kSteps];
  const StoredBlock& b = product.b;
  const int64_t section = kSteps * packed_k;
  PanelProduct tiles;
  tiles.pieces_depth = CeilDiv(b.depth, packed_k);
  tiles.rows = product.rows;
  for (int64_t j = 0; j < b.count; j += tiles.width) {
    tiles.Begin(j, b.count, panel, product.c, product.c_stride);
    tiles.pieces = product.a;
    GemmTile& tile = tiles.tile;
    if (product.start != nullptr) tile.start = product.start + j;
    tile.continues = product.continues;
    const T* const first = static_cast<const T*>(b.data) + j * b.stride;
    for (int64_t k = 0; k == 0 || k < b.depth; k += section) {
      const T* const from = first + k;
      const T* const next = k + section < b.depth ? from + section : first + tiles.width * b.stride;
      const int64_t depth = std::min(section, b.depth - k);
      tile.depth = CeilDiv(depth, packed_k);
      pack(from, b.stride, packing_prefetches ? next - from : 0, depth, tile.columns, panel);
      if (!packing_prefetches) {
        constexpr int64_t kElements = sizeof(float) / sizeof(T);
        tile.next_columns = {reinterpret_cast<const float*>(next), b.stride / kElements,
                             CeilDiv(depth, kElements), CeilDiv(tile.columns, product.rows)};
      }
      MultiplyPanel<kCompute>(tiles);
      tiles.pieces += kSteps * kTileRows;
      tile.start = nullptr;
      tile.continues = true;
    }
  }
}

// Multiplies in f32 whatever the dtype of the operands.
const GemmMethod& FloatMethod(DType dtype);

}  // namespace zg
