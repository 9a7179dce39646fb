#include "framework/kernels/cpu/gemm.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/gemm_amx.h"
#include "framework/kernels/cpu/gemm_pack.h"
#include "framework/kernels/cpu/gemm_pairs.h"
#include "framework/kernels/cpu/gemm_panels.h"

namespace zg {
namespace {

// A product with so few k is bound by the stores to C, which should go along its rows.
constexpr int64_t kShortDepth = 64;
// So large a C would leave the caches before it is read, so it is written past them, which saves
// fetching it first.
constexpr int64_t kStreamedBytes = int64_t{4} << 20;
constexpr int64_t kStreamedHalfBytes = int64_t{1} << 20;

constexpr int64_t kFewRows = kMaxPanelWidth;
constexpr int64_t kFewRowsDepth = 48;
constexpr int64_t kFewRowsTransposedDepth = 512;

// The size of equal parts of `total`, none larger than `largest`, in multiples of `unit`.
int64_t EvenBlock(int64_t total, int64_t largest, int64_t unit) {
  const int64_t parts = std::max<int64_t>(1, CeilDiv(total, largest));
  return std::max(unit, RoundUp(CeilDiv(total, parts), unit));
}

bool IsWholeLines(const void* c, int64_t row_bytes) {
  constexpr int64_t kLineBytes = kLineFloats * sizeof(float);
  return reinterpret_cast<uintptr_t>(c) % kLineBytes == 0 && row_bytes % kLineBytes == 0;
}

}  // namespace

const GemmMethod& FastestGemmMethod(DType dtype) {
  if (dtype == DType::kBF16 && HasAmxProducts()) return AmxMethod();
  if (dtype == DType::kBF16 && PairProductsAreFast()) return PairMethod();
  return FloatMethod(dtype);
}

Gemm::Gemm(const GemmSizes& sizes) : Gemm(sizes, FastestGemmMethod(sizes.dtype)) {}

Gemm::Gemm(const GemmSizes& sizes, const GemmMethod& method) : sizes_(sizes), method_(&method) {
  if (sizes.m > kFewRows || !is_f32()) {
    block_m_ = EvenBlock(sizes.m, sizes.k > kShortDepth ? method.max_rows : method.row_unit,
                         method.row_unit);
    block_k_ = EvenBlock(sizes.k, method.max_depth, method.depth_unit);
    const int64_t b_columns = method.max_b_size * method.packed_k / block_k_;
    block_n_ = EvenBlock(sizes.n, std::min(method.max_columns, b_columns), method.column_unit);
    sum_columns_ = is_f32() ? block_n_ : std::min(block_n_, method.sum_columns);
  } else {
    block_m_ = RoundUp(sizes.m, kTileRows);
    block_n_ = kMaxPanelWidth;
    block_k_ = EvenBlock(sizes.k, sizes.transpose_b ? kFewRowsTransposedDepth : kFewRowsDepth, 1);
  }
}

int64_t Gemm::sums_size() const {
  if (is_f32()) return 0;
  return cuts_k() ? RoundUp(sizes_.m, method_->row_unit) * block_n_ : block_m_ * sum_columns_;
}

int64_t Gemm::workspace_bytes() const {
  const int64_t floats =
      block_n_ + sums_size() + RoundUp(packed_b_size(), kLineFloats) + packed_a_size();
  return floats * static_cast<int64_t>(sizeof(float));
}

void Gemm::Run(GemmOperand a, GemmOperand b, const GemmTerms& terms, void* c, int64_t c_stride,
               void* workspace) const {
  const Operands operands = {a, b, terms, c, c_stride};
  if (sizes_.m > kFewRows || !is_f32()) {
    RunBlocks(operands, static_cast<float*>(workspace));
  } else {
    RunFewRows(operands, static_cast<float*>(workspace));
  }
}

StoredBlock Gemm::BlockOfA(const GemmOperand& a, int64_t row, int64_t k) const {
  const int64_t begin = sizes_.transpose_a ? k * a.stride + row : row * a.stride + k;
  return {static_cast<const char*>(a.data) + begin * SizeOf(sizes_.dtype), a.stride,
          !sizes_.transpose_a, std::min(block_m_, sizes_.m - row),
          std::min(block_k_, sizes_.k - k)};
}

StoredBlock Gemm::BlockOfB(const GemmOperand& b, int64_t column, int64_t k) const {
  const int64_t begin = sizes_.transpose_b ? column * b.stride + k : k * b.stride + column;
  return {static_cast<const char*>(b.data) + begin * SizeOf(sizes_.dtype), b.stride,
          sizes_.transpose_b, std::min(block_n_, sizes_.n - column),
          std::min(block_k_, sizes_.k - k)};
}

void Gemm::RunBlocks(const Operands& operands, float* workspace) const {
  const GemmScope scope(*method_);
  const int64_t element_bytes = SizeOf(sizes_.dtype);
  float* const start = workspace;
  float* const sums = start + block_n_;
  float* const packed_b = sums + sums_size();
  float* const packed_a = packed_b + RoundUp(packed_b_size(), kLineFloats);
  BlockProduct product;
  product.a = packed_a;
  product.c_stride = is_f32() ? operands.c_stride : sum_stride();
  const bool whole_lines = IsWholeLines(operands.c, operands.c_stride * element_bytes);
  const int64_t c_bytes = sizes_.m * sizes_.n * element_bytes;
  const bool may_stream = whole_lines && operands.terms.addend == nullptr;
  product.streams = is_f32() && sizes_.k <= kShortDepth && c_bytes >= kStreamedBytes && may_stream;
  const bool rounding_streams = !is_f32() && c_bytes >= kStreamedHalfBytes && may_stream &&
                                sizes_.n * element_bytes % (kLineFloats * sizeof(float)) == 0;
  for (int64_t column = 0; column < sizes_.n; column += block_n_) {
    const int64_t columns = std::min(block_n_, sizes_.n - column);
    if (operands.terms.bias != nullptr) {
      ConvertFloats(sizes_.dtype,
                    static_cast<const char*>(operands.terms.bias) + column * element_bytes,
                    DType::kF32, start, columns);
      std::fill(start + columns, start + block_n_, 0.0f);
    }
    // Once also if sizes_.k is 0: C is then the bias.
    for (int64_t k = 0; k == 0 || k < sizes_.k; k += block_k_) {
      product.depth = std::min(block_k_, sizes_.k - k);
      product.continues = k > 0;
      method_->pack_b(BlockOfB(operands.b, column, k), packed_b);
      for (int64_t row = 0; row < sizes_.m; row += block_m_) {
        product.rows = std::min(block_m_, sizes_.m - row);
        method_->pack_a(BlockOfA(operands.a, row, k), packed_a);
        for (int64_t part = 0; part < columns; part += sum_columns_) {
          const int64_t offset = row * operands.c_stride + column + part;
          product.columns = std::min(sum_columns_, columns - part);
          product.b = packed_b + method_->PackedBSize(part, product.depth);
          product.start = k == 0 && operands.terms.bias != nullptr ? start + part : nullptr;
          if (is_f32()) {
            product.c = static_cast<float*>(operands.c) + offset;
          } else {
            product.c = cuts_k() ? sums + row * sum_stride() + part : sums;
          }
          method_->multiply(product);
          if (is_f32() || k + block_k_ < sizes_.k) continue;
          method_->round({product.c, product.c_stride, product.rows, product.columns,
                          static_cast<char*>(operands.c) + offset * element_bytes,
                          operands.c_stride, rounding_streams});
        }
        if (operands.terms.addend == nullptr || k + block_k_ < sizes_.k) continue;
        const int64_t begin = (row * operands.c_stride + column) * element_bytes;
        AddRows(sizes_.dtype, static_cast<const char*>(operands.terms.addend) + begin, product.rows,
                columns, operands.c_stride, static_cast<char*>(operands.c) + begin);
      }
    }
  }
  if (product.streams || rounding_streams)
    hwy::FlushStream();  // for readers in other threads and processes
}

void Gemm::RunFewRows(const Operands& operands, float* workspace) const {
  const float* const b = static_cast<const float*>(operands.b.data);
  const float* const bias = static_cast<const float*>(operands.terms.bias);
  float* const c = static_cast<float*>(operands.c);
  const int64_t b_stride = operands.b.stride;
  float* const start = workspace;
  float* const panel = start + kMaxPanelWidth;
  float* const pieces = panel + RoundUp(packed_b_size(), kLineFloats);
  for (int64_t k = 0; k == 0 || k < sizes_.k; k += block_k_) {
    const int64_t depth = std::min(block_k_, sizes_.k - k);
    PanelProduct product;
    product.pieces = pieces;
    product.rows = sizes_.m;
    method_->pack_a(BlockOfA(operands.a, 0, k), pieces);
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
      } else if (tile.columns < product.width) {  // its rows are too short to be read in place
        PackPanels(b + k * b_stride + j, b_stride, depth, tile.columns, panel);
      } else {
        tile.b = b + k * b_stride + j;
        tile.b_stride = b_stride;
        tile.next_b = next_b;
        tile.next_b_lines = CeilDiv(product.width * depth, kLineFloats * sizes_.m);
      }
      if (bias != nullptr && k == 0) {
        std::copy_n(bias + j, tile.columns, start);
        tile.start = start;
      }
      product.next_c = tile.c + product.width;
      MultiplyPanel<ComputeTile>(product);
      next_b += product.width * depth;
    }
  }
  if (operands.terms.addend == nullptr) return;
  AddRows(DType::kF32, operands.terms.addend, sizes_.m, sizes_.n, operands.c_stride, c);
}

}  // namespace zg
