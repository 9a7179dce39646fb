#include "framework/kernels/cpu/gemm.h"

#include <algorithm>

#include "framework/kernels/cpu/gemm_pack.h"
#include "framework/kernels/cpu/gemm_tile.h"

namespace zg {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The size of equal parts of `total`, none larger than `largest`, in multiples of `unit`.
int64_t EvenBlock(int64_t total, int64_t largest, int64_t unit) {
  const int64_t parts = std::max<int64_t>(1, CeilDiv(total, largest));
  return std::max(unit, CeilDiv(CeilDiv(total, parts), unit) * unit);
}

constexpr int64_t kBlockRows = 224;      // of A: packed, a third of the second-level cache
constexpr int64_t kBlockColumns = 1536;  // of B

}  // namespace

Gemm::Gemm(const GemmSizes& sizes)
    : sizes_(sizes),
      block_m_(EvenBlock(sizes.m, kBlockRows, 1)),
      block_n_(EvenBlock(sizes.n, kBlockColumns, kPanelColumns)),
      block_k_(EvenBlock(sizes.k, kMaxDepth, 1)) {}

int64_t Gemm::workspace_bytes() const {
  const int64_t tiles = CeilDiv(block_m_, MaxTileRows());
  const int64_t a =
      sizes_.transpose_a ? tiles * block_k_ * kPackedColumnStride : block_m_ * kPackedRowStride;
  return (block_n_ * block_k_ + a + kPanelColumns) * static_cast<int64_t>(sizeof(float));
}

void Gemm::Run(GemmOperand a, GemmOperand b, const float* bias, float* c, int64_t c_stride,
               void* workspace) const {
  const int64_t max_rows = MaxTileRows();
  const ALayout layout = sizes_.transpose_a ? ALayout::kColumns : ALayout::kRows;
  float* const bias_panel = static_cast<float*>(workspace);
  float* const packed_b = bias_panel + kPanelColumns;
  float* const packed_a = packed_b + block_n_ * block_k_;

  for (int64_t column = 0; column < sizes_.n; column += block_n_) {
    const int64_t columns = std::min(block_n_, sizes_.n - column);
    for (int64_t depth_begin = 0; depth_begin < std::max<int64_t>(sizes_.k, 1);
         depth_begin += block_k_) {
      const int64_t depth = std::min(block_k_, sizes_.k - depth_begin);
      for (int64_t j = 0; j < columns; j += kPanelColumns) {
        const int64_t width = std::min(kPanelColumns, columns - j);
        float* const panel = packed_b + j * depth;
        if (sizes_.transpose_b) {
          PackTransposedPanel(b.data + (column + j) * b.stride + depth_begin, b.stride, depth,
                              width, panel);
        } else {
          PackPanel(b.data + depth_begin * b.stride + column + j, b.stride, depth, width, panel);
        }
      }
      for (int64_t row = 0; row < sizes_.m; row += block_m_) {
        const int64_t rows = std::min(block_m_, sizes_.m - row);
        const int64_t num_tiles = CeilDiv(rows, max_rows);
        const auto tile_begin = [=](int64_t tile) { return row + rows * tile / num_tiles; };
        const auto piece_of = [&](int64_t tile) {
          return packed_a + (sizes_.transpose_a ? tile * depth * kPackedColumnStride
                                                : (tile_begin(tile) - row) * kPackedRowStride);
        };
        for (int64_t tile = 0; tile < num_tiles; ++tile) {
          const int64_t begin = tile_begin(tile);
          const int64_t count = tile_begin(tile + 1) - begin;
          float* const piece = piece_of(tile);
          if (sizes_.transpose_a) {
            PackTileColumns(a.data + depth_begin * a.stride + begin, a.stride, depth, count, piece);
          } else {
            PackTileRows(a.data + begin * a.stride + depth_begin, a.stride, depth, count, piece);
          }
        }
        for (int64_t j = 0; j < columns; j += kPanelColumns) {
          GemmTile tile;
          tile.b = packed_b + j * depth;
          tile.c_stride = c_stride;
          tile.depth = depth;
          tile.columns = std::min(kPanelColumns, columns - j);
          tile.continues = depth_begin > 0;
          if (bias != nullptr && depth_begin == 0) {
            std::copy_n(bias + column + j, tile.columns, bias_panel);
            tile.start = bias_panel;
          }
          for (int64_t t = 0; t < num_tiles; ++t) {
            const int64_t begin = tile_begin(t);
            tile.a = piece_of(t);
            tile.c = c + begin * c_stride + column + j;
            FindGemmTile(layout, tile_begin(t + 1) - begin)(tile);
          }
        }
      }
    }
  }
}

}  // namespace zg
