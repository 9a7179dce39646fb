// Products of blocks packed in pieces and panels (gemm_pack.h), of floats or of what takes their
// place (gemm_pairs.h).
#pragma once

#include <cstdint>

#include "framework/kernels/cpu/gemm_method.h"
#include "framework/kernels/cpu/gemm_tile.h"
#include "framework/tensor/dtype.h"

namespace zg {

using TileCompute = void (*)(const GemmTile& tile, int64_t rows, int64_t width);

// Tiles of one panel: the panel stays near, the pieces of A pass by.
struct PanelProduct {
  const float* pieces;  // packed, of `rows` rows
  int64_t rows;
  int64_t width;
  const float* next_c;  // the panel after this one
  GemmTile tile;        // as for the first rows
};

void MultiplyPanel(const PanelProduct& product, TileCompute compute);

// Of blocks with `steps` floats, or what takes their place, in a row or column.
void MultiplyPanels(const BlockProduct& product, int64_t steps, TileCompute compute);

inline void ComputeFloatTile(const GemmTile& tile, int64_t rows, int64_t width) {
  ComputeTile(ALayout::kColumns, tile, rows, width);
}

// Multiplies in f32 whatever the operands are in.
const GemmMethod& FloatMethod(DType dtype);

}  // namespace zg
