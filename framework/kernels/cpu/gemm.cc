#include "framework/kernels/cpu/gemm.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/gemm_pack.h"
#include "framework/kernels/cpu/gemm_pairs.h"
#include "framework/kernels/cpu/gemm_tile.h"
#include "framework/tensor/half.h"

namespace zg {
namespace {

constexpr int64_t kFloatsPerLine = 16;
// A block of A and two panels of B fill half of a second-level cache of 1 MB.
constexpr int64_t kMaxBlockRows = 256;
constexpr int64_t kMaxBlockColumns = 1536;
constexpr int64_t kMaxBlockDepth = 384;
// A product of so few k is bound by the writing of C, which should go along its rows.
constexpr int64_t kShortDepth = 64;
// So large a C would leave the caches before it is read: it is written past them, which saves
// fetching it first.
constexpr int64_t kStreamedBytes = int64_t{4} << 20;
// A 16-bit C is summed in f32, for all rows of a block of columns, before it is rounded.
constexpr int64_t kMaxHalfBlockColumns = 384;

constexpr int64_t kFewRows = kMaxPanelWidth;
constexpr int64_t kFewRowsDepth = 48;
constexpr int64_t kFewRowsTransposedDepth = 512;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t value, int64_t unit) { return CeilDiv(value, unit) * unit; }

// The size of equal parts of `total`, none larger than `largest`, in multiples of `unit`.
int64_t EvenBlock(int64_t total, int64_t largest, int64_t unit) {
  const int64_t parts = std::max<int64_t>(1, CeilDiv(total, largest));
  return std::max(unit, RoundUp(CeilDiv(total, parts), unit));
}

// Tiles of one panel: the panel stays near, the pieces of A pass by.
struct PanelProduct {
  const float* pieces;  // packed, of `rows` rows
  int64_t rows;
  int64_t width;
  bool is_of_pairs;
  const float* next_c;  // the panel after this one
  GemmTile tile;        // as for the first rows
};

bool IsWholeLines(const float* c, int64_t stride) {
  return reinterpret_cast<uintptr_t>(c) % (kFloatsPerLine * sizeof(float)) == 0 &&
         stride % kFloatsPerLine == 0;
}

void Multiply(const PanelProduct& product) {
  GemmTile tile = product.tile;
  for (int64_t i = 0; i < product.rows; i += kTileRows) {
    const int64_t rows = std::min(kTileRows, product.rows - i);
    tile.a = product.pieces + i * tile.depth;
    tile.c = product.tile.c + i * tile.c_stride;
    if (!tile.streams) {
      tile.next_c = i + rows < product.rows ? tile.c + rows * tile.c_stride : product.next_c;
    }
    if (product.is_of_pairs) {
      ComputePairTile(tile, rows, product.width);
    } else {
      ComputeTile(ALayout::kColumns, tile, rows, product.width);
    }
    if (tile.next_b != nullptr) tile.next_b += rows * tile.next_b_lines * kFloatsPerLine;
  }
}

}  // namespace

Gemm::Gemm(const GemmSizes& sizes)
    : sizes_(sizes), multiplies_pairs_(sizes.dtype == DType::kBF16 && HasPairProducts()) {
  if (sizes.m > kFewRows || !is_f32()) {
    block_m_ = EvenBlock(sizes.m, sizes.k > kShortDepth ? kMaxBlockRows : kTileRows, kTileRows);
    block_n_ =
        EvenBlock(sizes.n, is_f32() ? kMaxBlockColumns : kMaxHalfBlockColumns, kMaxPanelWidth);
    block_k_ = multiplies_pairs_ ? EvenBlock(sizes.k, 2 * kMaxBlockDepth, 2)
                                 : EvenBlock(sizes.k, kMaxBlockDepth, 1);
  } else {
    block_m_ = RoundUp(sizes.m, kTileRows);
    block_n_ = kMaxPanelWidth;
    block_k_ = EvenBlock(sizes.k, sizes.transpose_b ? kFewRowsTransposedDepth : kFewRowsDepth, 1);
  }
}

int64_t Gemm::workspace_bytes() const {
  int64_t elements = kMaxPanelWidth;
  if (!is_f32()) elements += sizes_.m * block_n_;
  const int64_t steps = Steps(block_k_);
  elements += RoundUp(block_n_ * steps, kFloatsPerLine) + block_m_ * steps;
  return elements * static_cast<int64_t>(sizeof(float));
}

void Gemm::Run(GemmOperand a, GemmOperand b, const void* bias, void* c, int64_t c_stride,
               void* workspace) const {
  const Operands operands = {a, b, bias, c, c_stride};
  if (sizes_.m > kFewRows || !is_f32()) {
    WithFloatType(sizes_.dtype, [&](auto zero) {
      RunBlocks<decltype(zero)>(operands, static_cast<float*>(workspace));
    });
  } else {
    RunFewRows(operands, static_cast<float*>(workspace));
  }
}

template <typename T>
void Gemm::PackA(const GemmOperand& a, int64_t row, int64_t rows, int64_t k, int64_t depth,
                 float* pieces) const {
  const T* const data = static_cast<const T*>(a.data);
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (multiplies_pairs_) {
      return sizes_.transpose_a
                 ? PackTransposedPiecePairs(data + k * a.stride + row, a.stride, depth, rows,
                                            pieces)
                 : PackPiecePairs(data + row * a.stride + k, a.stride, depth, rows, pieces);
    }
  }
  if (sizes_.transpose_a) {
    PackTransposedPieces(data + k * a.stride + row, a.stride, depth, rows, pieces);
  } else {
    PackPieces(data + row * a.stride + k, a.stride, depth, rows, pieces);
  }
}

template <typename T>
void Gemm::PackB(const GemmOperand& b, int64_t column, int64_t columns, int64_t k, int64_t depth,
                 float* panels) const {
  const T* const data = static_cast<const T*>(b.data);
  const T* const begin =
      sizes_.transpose_b ? data + column * b.stride + k : data + k * b.stride + column;
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (multiplies_pairs_) {
      return sizes_.transpose_b ? PackTransposedPanelPairs(begin, b.stride, depth, columns, panels)
                                : PackPanelPairs(begin, b.stride, depth, columns, panels);
    }
  }
  if (sizes_.transpose_b) {
    PackTransposedPanels(begin, b.stride, depth, columns, panels);
  } else {
    PackPanels(begin, b.stride, depth, columns, panels);
  }
}

template <typename T>
void Gemm::RunBlocks(const Operands& operands, float* workspace) const {
  const T* const bias = static_cast<const T*>(operands.bias);
  float* const start = workspace;
  float* const half_sums = start + kMaxPanelWidth;
  float* const panels = half_sums + (is_f32() ? 0 : sizes_.m * block_n_);
  float* const pieces = panels + RoundUp(block_n_ * Steps(block_k_), kFloatsPerLine);
  const bool streams = is_f32() && sizes_.k <= kShortDepth &&
                       sizes_.m * sizes_.n * int64_t{sizeof(float)} >= kStreamedBytes &&
                       IsWholeLines(static_cast<float*>(operands.c), operands.c_stride);
  for (int64_t column = 0; column < sizes_.n; column += block_n_) {
    const int64_t columns = std::min(block_n_, sizes_.n - column);
    float* const c = is_f32() ? static_cast<float*>(operands.c) + column : half_sums;
    const int64_t c_stride = is_f32() ? operands.c_stride : block_n_;
    // Once also if sizes_.k is 0: C is then the bias.
    for (int64_t k = 0; k == 0 || k < sizes_.k; k += block_k_) {
      const int64_t depth = std::min(block_k_, sizes_.k - k);
      const int64_t steps = Steps(depth);
      PackB<T>(operands.b, column, columns, k, depth, panels);
      for (int64_t row = 0; row < sizes_.m; row += block_m_) {
        PanelProduct product;
        product.pieces = pieces;
        product.is_of_pairs = multiplies_pairs_;
        product.rows = std::min(block_m_, sizes_.m - row);
        PackA<T>(operands.a, row, product.rows, k, depth, pieces);
        for (int64_t j = 0; j < columns; j += product.width) {
          product.width = PanelWidth(columns - j);
          GemmTile& tile = product.tile;
          tile = {};
          tile.a_stride = kTileRows;
          tile.b = panels + j * steps;
          tile.b_stride = product.width;
          tile.c = c + row * c_stride + j;
          tile.c_stride = c_stride;
          tile.depth = steps;
          tile.columns = std::min(product.width, columns - j);
          tile.continues = k > 0;
          tile.streams = streams && tile.columns == product.width;
          if (bias != nullptr && k == 0) {
            for (int64_t i = 0; i < tile.columns; ++i) start[i] = ToF32(bias[column + j + i]);
            tile.start = start;
          }
          tile.next_b = tile.b + product.width * steps;
          tile.next_b_lines = CeilDiv(product.width * steps, kFloatsPerLine * product.rows);
          product.next_c = tile.c + product.width;
          Multiply(product);
        }
      }
    }
    if (is_f32()) continue;
    char* const rounded = static_cast<char*>(operands.c);
    for (int64_t row = 0; row < sizes_.m; ++row) {
      const int64_t offset = row * operands.c_stride + column;
      ConvertFloats(DType::kF32, half_sums + row * c_stride, sizes_.dtype,
                    rounded + offset * SizeOf(sizes_.dtype), columns);
    }
  }
  if (streams) hwy::FlushStream();  // for readers in other threads and processes
}

void Gemm::RunFewRows(const Operands& operands, float* workspace) const {
  const float* const b = static_cast<const float*>(operands.b.data);
  const float* const bias = static_cast<const float*>(operands.bias);
  float* const c = static_cast<float*>(operands.c);
  const int64_t b_stride = operands.b.stride;
  float* const start = workspace;
  float* const panel = start + kMaxPanelWidth;
  float* const pieces = panel + RoundUp(block_n_ * block_k_, kFloatsPerLine);
  for (int64_t k = 0; k == 0 || k < sizes_.k; k += block_k_) {
    const int64_t depth = std::min(block_k_, sizes_.k - k);
    PanelProduct product;
    product.pieces = pieces;
    product.rows = sizes_.m;
    product.is_of_pairs = false;
    PackA<float>(operands.a, 0, sizes_.m, k, depth, pieces);
    const float* next_b = b + (k + depth) * b_stride;
    for (int64_t j = 0; j < sizes_.n; j += product.width) {
      product.width = PanelWidth(sizes_.n - j);
      GemmTile& tile = product.tile;
      tile = {};
      tile.a_stride = kTileRows;
      tile.b = panel;
      tile.b_stride = product.width;
      tile.c = c + j;
      tile.c_stride = operands.c_stride;
      tile.depth = depth;
      tile.columns = std::min(product.width, sizes_.n - j);
      tile.continues = k > 0;
      if (sizes_.transpose_b) {
        PackTransposedPanels(b + j * b_stride + k, b_stride, depth, tile.columns, panel);
      } else if (tile.columns < product.width) {  // its rows are too short to be read as they are
        PackPanels(b + k * b_stride + j, b_stride, depth, tile.columns, panel);
      } else {
        tile.b = b + k * b_stride + j;
        tile.b_stride = b_stride;
        tile.next_b = next_b;
        tile.next_b_lines = CeilDiv(product.width * depth, kFloatsPerLine * sizes_.m);
      }
      if (bias != nullptr && k == 0) {
        std::copy_n(bias + j, tile.columns, start);
        tile.start = start;
      }
      product.next_c = tile.c + product.width;
      Multiply(product);
      next_b += product.width * depth;
    }
  }
}

}  // namespace zg
