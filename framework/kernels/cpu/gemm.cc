#include "framework/kernels/cpu/gemm.h"

#include <algorithm>

#include "framework/kernels/cpu/gemm_pack.h"
#include "framework/kernels/cpu/gemm_tile.h"

namespace zg {
namespace {

constexpr int64_t kMaxBlockRows = 256;      // of A
constexpr int64_t kMaxBlockColumns = 1536;  // of B
constexpr int64_t kMaxBlockDepth = 384;
constexpr int64_t kFloatsPerLine = 16;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The size of equal parts of `total`, none larger than `largest`, in multiples of `unit`.
int64_t EvenBlock(int64_t total, int64_t largest, int64_t unit) {
  const int64_t parts = std::max<int64_t>(1, CeilDiv(total, largest));
  return std::max(unit, CeilDiv(CeilDiv(total, parts), unit) * unit);
}

// `total` cut into parts of nearly equal size, none larger than `largest` units.
class EvenParts {
 public:
  EvenParts(int64_t total, int64_t unit, int64_t largest)
      : total_(total),
        unit_(unit),
        num_units_(CeilDiv(total, unit)),
        num_parts_(CeilDiv(num_units_, largest)) {}

  int64_t num_parts() const { return num_parts_; }
  int64_t begin(int64_t part) const { return num_units_ * part / num_parts_ * unit_; }
  // Of the last part only, less than its width.
  int64_t size(int64_t part) const { return std::min(begin(part + 1), total_) - begin(part); }
  int64_t width(int64_t part) const { return begin(part + 1) - begin(part); }

 private:
  int64_t total_;
  int64_t unit_;
  int64_t num_units_;
  int64_t num_parts_;
};

}  // namespace

Gemm::Gemm(const GemmSizes& sizes)
    : sizes_(sizes),
      block_m_(EvenBlock(sizes.m, kMaxBlockRows, kTileRows)),
      block_n_(EvenBlock(sizes.n, kMaxBlockColumns, kPanelUnit)),
      block_k_(EvenBlock(sizes.k, kMaxBlockDepth, 1)) {}

int64_t Gemm::workspace_bytes() const {
  const int64_t a = CeilDiv(block_m_, kTileRows) * kTileRows * block_k_;
  const int64_t b = block_n_ * block_k_;
  return (kMaxPanelWidth + CeilDiv(b, kFloatsPerLine) * kFloatsPerLine + a) *
         static_cast<int64_t>(sizeof(float));
}

void Gemm::Run(GemmOperand a, GemmOperand b, const float* bias, float* c, int64_t c_stride,
               void* workspace) const {
  float* const bias_panel = static_cast<float*>(workspace);
  float* const packed_b = bias_panel + kMaxPanelWidth;
  float* const packed_a = packed_b + CeilDiv(block_n_ * block_k_, kFloatsPerLine) * kFloatsPerLine;

  for (int64_t column = 0; column < sizes_.n; column += block_n_) {
    const EvenParts panels(std::min(block_n_, sizes_.n - column), kPanelUnit,
                           kMaxPanelWidth / kPanelUnit);
    // Once also if k is 0: C is then the bias.
    for (int64_t k = 0; k == 0 || k < sizes_.k; k += block_k_) {
      const int64_t depth = std::min(block_k_, sizes_.k - k);
      for (int64_t p = 0; p < panels.num_parts(); ++p) {
        float* const panel = packed_b + panels.begin(p) * depth;
        const int64_t first = column + panels.begin(p);
        if (sizes_.transpose_b) {
          PackTransposedPanel(b.data + first * b.stride + k, b.stride, depth, panels.size(p),
                              panels.width(p), panel);
        } else {
          PackPanel(b.data + k * b.stride + first, b.stride, depth, panels.size(p), panels.width(p),
                    panel);
        }
      }
      for (int64_t row = 0; row < sizes_.m; row += block_m_) {
        const EvenParts pieces(std::min(block_m_, sizes_.m - row), 1, kTileRows);
        for (int64_t i = 0; i < pieces.num_parts(); ++i) {
          float* const piece = packed_a + i * depth * kTileRows;
          const int64_t first = row + pieces.begin(i);
          if (sizes_.transpose_a) {
            PackTransposedPiece(a.data + k * a.stride + first, a.stride, depth, pieces.size(i),
                                piece);
          } else {
            PackPiece(a.data + first * a.stride + k, a.stride, depth, pieces.size(i), piece);
          }
        }
        for (int64_t p = 0; p < panels.num_parts(); ++p) {
          const int64_t width = panels.width(p);
          float* const c_panel = c + row * c_stride + column + panels.begin(p);
          GemmTile tile;
          tile.b = packed_b + panels.begin(p) * depth;
          tile.c_stride = c_stride;
          tile.depth = depth;
          tile.columns = panels.size(p);
          tile.continues = k > 0;
          if (bias != nullptr && k == 0) {
            std::copy_n(bias + column + panels.begin(p), tile.columns, bias_panel);
            tile.start = bias_panel;
          }
          tile.next_b = tile.b + width * depth;
          tile.next_b_lines =
              CeilDiv(width * depth, kFloatsPerLine * std::min(block_m_, sizes_.m - row));
          for (int64_t i = 0; i < pieces.num_parts(); ++i) {
            const int64_t rows = pieces.size(i);
            tile.a = packed_a + i * depth * kTileRows;
            tile.c = c_panel + pieces.begin(i) * c_stride;
            tile.next_c = i + 1 < pieces.num_parts() ? tile.c + rows * c_stride : c_panel + width;
            ComputeTile(tile, rows, width);
            tile.next_b += rows * tile.next_b_lines * kFloatsPerLine;
          }
        }
      }
    }
  }
}

}  // namespace zg
