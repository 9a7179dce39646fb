#include "framework/kernels/cpu/gemm.h"

#include <algorithm>

#include "framework/kernels/cpu/gemm_pack.h"
#include "framework/kernels/cpu/gemm_tile.h"

namespace zg {
namespace {

constexpr int64_t kFloatsPerLine = 16;
// A block of A and two panels of B fill half of a second-level cache of 1 MB.
constexpr int64_t kMaxBlockRows = 256;
constexpr int64_t kMaxBlockColumns = 1536;
constexpr int64_t kMaxBlockDepth = 384;

// With so few rows, B passes by once and decides the speed: it is packed in small blocks that are
// contiguous in memory, the next one being fetched while this one is multiplied.
constexpr int64_t kFewRows = 48;
constexpr int64_t kFewRowsDepth = 48;              // of B stored by rows
constexpr int64_t kFewRowsTransposedDepth = 2560;  // of B stored by columns

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The size of equal parts of `total`, none larger than `largest`, in multiples of `unit`.
int64_t EvenBlock(int64_t total, int64_t largest, int64_t unit) {
  const int64_t parts = std::max<int64_t>(1, CeilDiv(total, largest));
  return std::max(unit, CeilDiv(CeilDiv(total, parts), unit) * unit);
}

// Rows of A and columns of B that are packed, and the place of their product in C.
struct Block {
  const float* a;
  const float* b;
  int64_t rows;
  int64_t columns;
  int64_t depth;
  const float* bias;  // of these columns, or null
  float* c;
  int64_t c_stride;
  bool continues;
  // What to fetch meanwhile: null for the next panel of this block.
  const float* next_b;
  int64_t next_b_lines;
};

// Panel by panel: the panel stays near, A passes by.
void Multiply(const Block& block, float* bias_panel) {
  const float* next_b = block.next_b;
  for (int64_t j = 0, width; j < block.columns; j += width) {
    width = PanelWidth(block.columns - j);
    GemmTile tile;
    tile.a_stride = kTileRows;
    tile.b = block.b + j * block.depth;
    tile.b_stride = width;
    tile.c_stride = block.c_stride;
    tile.depth = block.depth;
    tile.columns = std::min(width, block.columns - j);
    tile.continues = block.continues;
    if (block.bias != nullptr) {
      std::copy_n(block.bias + j, tile.columns, bias_panel);
      tile.start = bias_panel;
    }
    if (next_b == nullptr) {
      tile.next_b = tile.b + width * block.depth;
      tile.next_b_lines = CeilDiv(width * block.depth, kFloatsPerLine * block.rows);
    } else {
      tile.next_b = next_b;
      tile.next_b_lines = CeilDiv(block.next_b_lines * width, block.columns * block.rows);
    }
    for (int64_t i = 0; i < block.rows; i += kTileRows) {
      const int64_t rows = std::min(kTileRows, block.rows - i);
      tile.a = block.a + i * block.depth;
      tile.c = block.c + i * block.c_stride + j;
      tile.next_c =
          i + kTileRows < block.rows ? tile.c + kTileRows * block.c_stride : block.c + j + width;
      ComputeTile(ALayout::kColumns, tile, rows, width);
      tile.next_b += rows * tile.next_b_lines * kFloatsPerLine;
    }
    if (next_b != nullptr) next_b = tile.next_b;
  }
}

}  // namespace

Gemm::Gemm(const GemmSizes& sizes) : sizes_(sizes) {
  block_m_ = EvenBlock(sizes.m, kMaxBlockRows, kTileRows);
  if (sizes.m > kFewRows) {
    block_n_ = EvenBlock(sizes.n, kMaxBlockColumns, kMaxPanelWidth);
    block_k_ = EvenBlock(sizes.k, kMaxBlockDepth, 1);
  } else if (sizes.transpose_b) {
    block_n_ = kMaxPanelWidth;
    block_k_ = EvenBlock(sizes.k, kFewRowsTransposedDepth, 1);
  } else {
    block_n_ = EvenBlock(sizes.n, 4096, kMaxPanelWidth);
    block_k_ = EvenBlock(sizes.k, kFewRowsDepth, 1);
  }
}

int64_t Gemm::workspace_bytes() const {
  return (kMaxPanelWidth + CeilDiv(block_n_ * block_k_, kFloatsPerLine) * kFloatsPerLine +
          block_m_ * block_k_) *
         static_cast<int64_t>(sizeof(float));
}

void Gemm::Run(GemmOperand a, GemmOperand b, const float* bias, float* c, int64_t c_stride,
               void* workspace) const {
  float* const bias_panel = static_cast<float*>(workspace);
  float* const packed_b = bias_panel + kMaxPanelWidth;
  float* const packed_a = packed_b + CeilDiv(block_n_ * block_k_, kFloatsPerLine) * kFloatsPerLine;
  const bool a_stays = sizes_.m <= block_m_ && sizes_.k <= block_k_;

  for (int64_t column = 0; column < sizes_.n; column += block_n_) {
    // Once also if sizes_.k is 0: C is then the bias.
    for (int64_t k = 0; k == 0 || k < sizes_.k; k += block_k_) {
      Block block;
      block.b = packed_b;
      block.columns = std::min(block_n_, sizes_.n - column);
      block.depth = std::min(block_k_, sizes_.k - k);
      block.bias = bias == nullptr || k > 0 ? nullptr : bias + column;
      block.c_stride = c_stride;
      block.continues = k > 0;
      block.next_b = nullptr;
      if (sizes_.transpose_b) {
        const float* const first = b.data + column * b.stride + k;
        PackTransposedPanels(first, b.stride, block.depth, block.columns, packed_b);
        if (sizes_.m <= kFewRows) block.next_b = first + block.columns * b.stride;
      } else {
        const float* const first = b.data + k * b.stride + column;
        PackPanels(first, b.stride, block.depth, block.columns, packed_b);
        if (sizes_.m <= kFewRows) block.next_b = first + block.depth * b.stride;
      }
      block.next_b_lines = block.columns * block.depth / kFloatsPerLine;
      for (int64_t row = 0; row < sizes_.m; row += block_m_) {
        block.a = packed_a;
        block.rows = std::min(block_m_, sizes_.m - row);
        block.c = c + row * c_stride + column;
        if (!a_stays || column == 0) {
          if (sizes_.transpose_a) {
            PackTransposedPieces(a.data + k * a.stride + row, a.stride, block.depth, block.rows,
                                 packed_a);
          } else {
            PackPieces(a.data + row * a.stride + k, a.stride, block.depth, block.rows, packed_a);
          }
        }
        Multiply(block, bias_panel);
      }
    }
  }
}

}  // namespace zg
