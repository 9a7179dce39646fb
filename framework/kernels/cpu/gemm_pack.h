// Copies pieces of matrices into the layouts of gemm_tile.h.
#pragma once

#include <cstdint>

#include "framework/kernels/cpu/gemm_tile.h"

namespace zg {

// A panel of B of `width` columns, of which `columns` exist; the others become zeros.
// `b` is stored by rows: element (k, j) at k * stride + j.
void PackPanel(const float* b, int64_t stride, int64_t depth, int64_t columns, int64_t width,
               float* panel);
// `b` is stored by columns: element (k, j) at j * stride + k.
void PackTransposedPanel(const float* b, int64_t stride, int64_t depth, int64_t columns,
                         int64_t width, float* panel);

// A piece of A of `rows` <= kTileRows rows. `a` is stored by rows: element (i, k) at
// i * stride + k.
void PackPiece(const float* a, int64_t stride, int64_t depth, int64_t rows, float* piece);
// `a` is stored by columns: element (i, k) at k * stride + i.
void PackTransposedPiece(const float* a, int64_t stride, int64_t depth, int64_t rows, float* piece);

}  // namespace zg
