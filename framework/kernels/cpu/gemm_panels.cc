#include "framework/kernels/cpu/gemm_panels.h"

#include <algorithm>

#include "framework/kernels/cpu/gemm_pack.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

constexpr int64_t kFloatsPerLine = 16;

template <typename T>
void PackA(const StoredBlock& block, float* pieces) {
  const T* const data = static_cast<const T*>(block.data);
  if (block.runs_along_k) {
    PackPieces(data, block.stride, block.depth, block.count, pieces);
  } else {
    PackTransposedPieces(data, block.stride, block.depth, block.count, pieces);
  }
}

template <typename T>
void PackB(const StoredBlock& block, float* panels) {
  const T* const data = static_cast<const T*>(block.data);
  if (block.runs_along_k) {
    PackTransposedPanels(data, block.stride, block.depth, block.count, panels);
  } else {
    PackPanels(data, block.stride, block.depth, block.count, panels);
  }
}

void Multiply(const BlockProduct& product) {
  MultiplyPanels(product, product.depth, ComputeFloatTile);
}

// A block of A and two panels of B fill half of a second-level cache of 1 MB.
constexpr int64_t kMaxDepth = 384;

template <typename T>
constexpr GemmMethod kFloatMethod = {kTileRows, kMaxPanelWidth, 1,        kMaxDepth,
                                     1,         PackA<T>,       PackB<T>, Multiply};

}  // namespace

void MultiplyPanel(const PanelProduct& product, TileCompute compute) {
  GemmTile tile = product.tile;
  for (int64_t i = 0; i < product.rows; i += kTileRows) {
    const int64_t rows = std::min(kTileRows, product.rows - i);
    tile.a = product.pieces + i * tile.depth;
    tile.c = product.tile.c + i * tile.c_stride;
    if (!tile.streams) {
      tile.next_c = i + rows < product.rows ? tile.c + rows * tile.c_stride : product.next_c;
    }
    compute(tile, rows, product.width);
    if (tile.next_b != nullptr) tile.next_b += rows * tile.next_b_lines * kFloatsPerLine;
  }
}

void MultiplyPanels(const BlockProduct& product, int64_t steps, TileCompute compute) {
  PanelProduct panel;
  panel.pieces = product.a;
  panel.rows = product.rows;
  for (int64_t j = 0; j < product.columns; j += panel.width) {
    panel.width = PanelWidth(product.columns - j);
    GemmTile& tile = panel.tile;
    tile = {};
    tile.a_stride = kTileRows;
    tile.b = product.b + j * steps;
    tile.b_stride = panel.width;
    tile.c = product.c + j;
    tile.c_stride = product.c_stride;
    tile.depth = steps;
    tile.columns = std::min(panel.width, product.columns - j);
    if (product.start != nullptr) tile.start = product.start + j;
    tile.continues = product.continues;
    tile.streams = product.streams && tile.columns == panel.width;
    tile.next_b = tile.b + panel.width * steps;
    tile.next_b_lines = CeilDiv(panel.width * steps, kFloatsPerLine * product.rows);
    panel.next_c = tile.c + panel.width;
    MultiplyPanel(panel, compute);
  }
}

const GemmMethod& FloatMethod(DType dtype) {
  return WithFloatType(dtype,
                       [](auto zero) -> const GemmMethod& { return kFloatMethod<decltype(zero)>; });
}

}  // namespace zg
