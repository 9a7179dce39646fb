#include "framework/kernels/cpu/gemm.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "framework/base/check.h"
#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/gemm_amx.h"
#include "framework/kernels/cpu/gemm_pack.h"
#include "framework/kernels/cpu/gemm_pairs.h"
#include "framework/kernels/cpu/gemm_panels.h"

namespace zg {
namespace {

// So large a C would leave the caches before it is read. With so few k a product is bound by the
// stores to it, which then go along its rows, in f32 past the caches, which saves fetching it first.
constexpr int64_t kShortDepth = 48;
constexpr int64_t kStreamedBytes = int64_t{4} << 20;
constexpr int64_t kStreamedHalfBytes = int64_t{1} << 20;

// Columns of a product in parts, whose sums take as many blocks of the scratch.
constexpr int64_t kPartedColumns = 512;

// Rows of B that are read side by side in place. For one tile of rows of A the memory is the limit,
// which gives most when a few long rows are read.
constexpr int64_t kFewRowsDepth = 48;
constexpr int64_t kLongRowsDepth = 8;
constexpr int64_t kLongRow = 256;

// Products with B's columns in place: A is packed this deep, or whole in 16 bits, with so many
// floats at most. So it stays in the second-level cache.
constexpr int64_t kColumnsDepth = 2048;
constexpr int64_t kColumnsFloats = int64_t{1} << 18;
// Columns whose sums are rounded together: panels and strips of tiles fit into them.
constexpr int64_t kColumnsInPlace = 192;

// The size of equal parts of `total`, none larger than `largest`, in multiples of `unit`.
int64_t EvenBlock(int64_t total, int64_t largest, int64_t unit) {
  const int64_t parts = std::max<int64_t>(1, CeilDiv(total, largest));
  return std::max(unit, RoundUp(CeilDiv(total, parts), unit));
}

bool IsWholeLines(const void* c, int64_t row_bytes) {
  constexpr int64_t kLineBytes = kLineFloats * sizeof(float);
  return reinterpret_cast<uintptr_t>(c) % kLineBytes == 0 && row_bytes % kLineBytes == 0;
}

// The sums of a block of columns of a product in parts. As in counting in binary, each part adds the
// sums of as many parts before it as have waited for it, and waits in the place of the first of them.
class PartedSums {
 public:
  // The first place is C itself, the others are blocks of `scratch`.
  PartedSums(BlockSums c, float* scratch, int64_t block_size, int64_t stride)
      : c_(c), scratch_(scratch), block_size_(block_size), stride_(stride) {}

  // Returns where the next product of the part goes, with what it continues and adds there.
  BlockSums Next(int64_t part, bool ends_part, const SumOfPart** sum) {
    int num_waiting = 0;
    for (int64_t bits = part; bits > 0; bits &= bits - 1) ++num_waiting;
    sum_.begun = Place(num_waiting);
    sum_.earlier = earlier_.data();
    sum_.num_earlier = 0;
    for (int64_t bits = part; ends_part && bits % 2 == 1; bits /= 2) {
      earlier_[sum_.num_earlier++] = Place(--num_waiting);
    }
    *sum = &sum_;
    return Place(num_waiting);
  }

 private:
  BlockSums Place(int index) const {
    if (index == 0) return c_;
    return {scratch_ + (index - 1) * block_size_, stride_};
  }

  const BlockSums c_;
  float* const scratch_;
  const int64_t block_size_;
  const int64_t stride_;
  SumOfPart sum_;
  std::array<BlockSums, 64> earlier_;
};

}  // namespace

const GemmMethod& FastestGemmMethod(DType dtype) {
  if (dtype == DType::kBF16 && HasAmxProducts()) return AmxMethod();
  if (dtype == DType::kBF16 && PairProductsAreFast()) return PairMethod();
  return FloatMethod(dtype);
}

Gemm::Gemm(const GemmSizes& sizes) : Gemm(sizes, FastestGemmMethod(sizes.dtype)) {}

Gemm::Gemm(const GemmSizes& sizes, const GemmMethod& method) : sizes_(sizes), method_(&method) {
  const int64_t num_parts = sizes.parts.count;
  ZG_CHECK(num_parts == 1 || (is_f32() && (num_parts & (num_parts - 1)) == 0 &&
                              sizes.k % (num_parts * sizes.parts.groups) == 0),
           "a sum over {} k in {} parts of {} groups", sizes.k, num_parts, sizes.parts.groups);
  if (is_empty()) return;
  if (runs_columns()) {
    block_m_ = RoundUp(sizes.m, method.row_unit);
    block_n_ = sum_columns_ = kColumnsInPlace;
    block_k_ = is_f32() ? EvenBlock(sizes.k, kColumnsDepth, 1) : sizes.k;
  } else if (runs_blocks()) {
    block_m_ = EvenBlock(sizes.m, is_bound_by_stores() ? method.row_unit : method.max_rows,
                         method.row_unit);
    block_k_ =
        EvenBlock(num_parts > 1 ? run_of_part() : sizes.k, method.max_depth, method.depth_unit);
    const int64_t b_columns = method.max_b_size * method.packed_k / block_k_;
    const int64_t max_columns = num_parts > 1 ? kPartedColumns : method.max_columns;
    block_n_ = EvenBlock(sizes.n, std::min(max_columns, b_columns), method.column_unit);
    sum_columns_ = is_f32() ? block_n_ : std::min(block_n_, method.sum_columns);
  } else {
    block_m_ = RoundUp(sizes.m, kTileRows);
    block_n_ = kMaxPanelWidth;
    block_k_ = EvenBlock(sizes.k, reads_long_rows() ? kLongRowsDepth : kFewRowsDepth, 1);
  }
  depths_ = Depths();
}

bool Gemm::is_bound_by_stores() const {
  return sizes_.k <= kShortDepth && sizes_.m * sizes_.n * SizeOf(sizes_.dtype) >=
                                        (is_f32() ? kStreamedBytes : kStreamedHalfBytes);
}

bool Gemm::reads_long_rows() const { return sizes_.m <= kTileRows && sizes_.n >= kLongRow; }

bool Gemm::runs_many_rows() const {
  return sizes_.m > kFewRows || sizes_.parts.count > 1 || sizes_.packed_b;
}

bool Gemm::runs_blocks() const { return runs_many_rows() || !is_f32(); }

bool Gemm::runs_columns() const {
  if (runs_many_rows() || !sizes_.transpose_b) return false;
  return is_f32() || (sizes_.k > 0 && sizes_.k % method_->depth_unit == 0 &&
                      method_->PackedASize(sizes_.m, sizes_.k) <= kColumnsFloats);
}

std::vector<Gemm::Depth> Gemm::Depths() const {
  const auto [num_parts, num_groups] = sizes_.parts;
  const bool is_in_parts = num_parts > 1;
  const int64_t run = is_in_parts ? run_of_part() : sizes_.k;
  std::vector<Depth> depths;
  for (int64_t part = 0; part < num_parts; ++part) {
    for (int64_t group = 0; group < (is_in_parts ? num_groups : 1); ++group) {
      const int64_t first = group * (sizes_.k / num_groups) + part * run;
      // Once also if sizes_.k is 0: C is then the bias.
      for (int64_t k = 0; k == 0 || k < run; k += block_k_) {
        depths.push_back({first + k, std::min(block_k_, run - k), part, group == 0 && k == 0,
                          (!is_in_parts || group == num_groups - 1) && k + block_k_ >= run});
      }
    }
  }
  return depths;
}

int Gemm::num_parted_sums() const {
  int levels = 0;
  for (int64_t parts = sizes_.parts.count; parts > 1; parts /= 2) ++levels;
  return levels;
}

int64_t Gemm::sums_size() const {
  if (is_f32()) return num_parted_sums() * sizes_.m * block_n_;
  return cuts_k() ? RoundUp(sizes_.m, method_->row_unit) * block_n_ : block_m_ * sum_columns_;
}

int64_t Gemm::packed_b_size() const {
  return runs_columns() || sizes_.packed_b ? 0 : method_->PackedBSize(block_n_, block_k_);
}

int64_t Gemm::packed_block_size() const {
  return AlignedFloats(method_->PackedBSize(block_n_, block_k_));
}

int64_t Gemm::packed_b_bytes() const {
  if (is_empty()) return 0;
  const int64_t num_blocks = CeilDiv(sizes_.n, block_n_) * static_cast<int64_t>(depths_.size());
  return num_blocks * packed_block_size() * static_cast<int64_t>(sizeof(float));
}

// Block by block, in the order in which RunBlocks reads them.
void Gemm::PackB(GemmOperand b, void* packed) const {
  if (is_empty()) return;
  float* block = static_cast<float*>(packed);
  for (int64_t column = 0; column < sizes_.n; column += block_n_) {
    for (const Depth& depth : depths_) {
      method_->pack_b(BlockOfB(b, column, depth.begin, depth.count), block);
      block += packed_block_size();
    }
  }
}

int64_t Gemm::workspace_bytes() const {
  if (is_empty()) return 0;
  const int64_t floats = block_n_ + sums_size() + AlignedFloats(packed_b_size()) + packed_a_size();
  return floats * static_cast<int64_t>(sizeof(float));
}

void Gemm::Run(GemmOperand a, GemmOperand b, const GemmTerms& terms, void* c, int64_t c_stride,
               void* workspace) const {
  if (is_empty()) return;
  const Operands operands = {a, b, terms, c, c_stride};
  if (runs_columns()) {
    RunColumns(operands, static_cast<float*>(workspace));
  } else if (runs_blocks()) {
    RunBlocks(operands, static_cast<float*>(workspace));
  } else {
    RunFewRows(operands, static_cast<float*>(workspace));
  }
}

StoredBlock Gemm::BlockOfA(const GemmOperand& a, int64_t row, int64_t k, int64_t depth) const {
  const int64_t begin = sizes_.transpose_a ? k * a.stride + row : row * a.stride + k;
  return {static_cast<const char*>(a.data) + begin * SizeOf(sizes_.dtype), a.stride,
          !sizes_.transpose_a, std::min(block_m_, sizes_.m - row), depth};
}

StoredBlock Gemm::BlockOfB(const GemmOperand& b, int64_t column, int64_t k, int64_t depth) const {
  const int64_t begin = sizes_.transpose_b ? column * b.stride + k : k * b.stride + column;
  return {static_cast<const char*>(b.data) + begin * SizeOf(sizes_.dtype), b.stride,
          sizes_.transpose_b, std::min(block_n_, sizes_.n - column), depth};
}

void Gemm::RunBlocks(const Operands& operands, float* workspace) const {
  const GemmScope scope(*method_);
  const int64_t element_bytes = SizeOf(sizes_.dtype);
  float* const start = workspace;
  float* const sums = start + block_n_;
  float* const packed_b = sums + sums_size();
  float* const packed_a = packed_b + AlignedFloats(packed_b_size());
  BlockProduct product;
  const float* next_packed = static_cast<const float*>(operands.b.data);
  product.a = packed_a;
  product.c_stride = is_f32() ? operands.c_stride : sum_stride();
  const bool whole_lines = IsWholeLines(operands.c, operands.c_stride * element_bytes);
  const int64_t c_bytes = sizes_.m * sizes_.n * element_bytes;
  const bool may_stream = whole_lines && operands.terms.addend == nullptr;
  const bool is_in_parts = sizes_.parts.count > 1;
  product.streams = is_f32() && is_bound_by_stores() && may_stream && !is_in_parts;
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
    PartedSums parted(
        {static_cast<float*>(operands.c) + (is_f32() ? column : 0), operands.c_stride}, sums,
        sizes_.m * block_n_, block_n_);
    for (const Depth& depth : depths_) {
      const bool is_last = &depth == &depths_.back();
      product.depth = depth.count;
      product.continues = !depth.begins_part;
      BlockSums to;
      if (is_in_parts) to = parted.Next(depth.part, depth.ends_part, &product.part);
      const float* block_b = packed_b;
      if (sizes_.packed_b) {
        block_b = std::exchange(next_packed, next_packed + packed_block_size());
      } else {
        method_->pack_b(BlockOfB(operands.b, column, depth.begin, depth.count), packed_b);
      }
      for (int64_t row = 0; row < sizes_.m; row += block_m_) {
        product.rows = std::min(block_m_, sizes_.m - row);
        product.row = row;
        method_->pack_a(BlockOfA(operands.a, row, depth.begin, depth.count), packed_a);
        for (int64_t part = 0; part < columns; part += sum_columns_) {
          const int64_t offset = row * operands.c_stride + column + part;
          product.columns = std::min(sum_columns_, columns - part);
          product.column = part;
          product.b = block_b + method_->PackedBSize(part, product.depth);
          const bool is_first = &depth == &depths_.front();
          product.start = is_first && operands.terms.bias != nullptr ? start + part : nullptr;
          if (is_in_parts) {
            product.c = to.At(row, part);
            product.c_stride = to.stride;
          } else if (is_f32()) {
            product.c = static_cast<float*>(operands.c) + offset;
          } else {
            product.c = cuts_k() ? sums + row * sum_stride() + part : sums;
          }
          method_->multiply(product);
          if (is_f32() || !is_last) continue;
          method_->round({product.c, product.c_stride, product.rows, product.columns,
                          static_cast<char*>(operands.c) + offset * element_bytes,
                          operands.c_stride, rounding_streams});
        }
        if (operands.terms.addend == nullptr || !is_last) continue;
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
  float* const start = workspace;
  float* const panel = start + kMaxPanelWidth;
  float* const pieces = panel + AlignedFloats(packed_b_size());
  for (const Depth& depth : depths_) {
    method_->pack_a(BlockOfA(operands.a, 0, depth.begin, depth.count), pieces);
    PanelProduct product;
    product.pieces_depth = depth.count;
    product.rows = sizes_.m;
    for (int64_t j = 0; j < sizes_.n; j += product.width) {
      product.Begin(j, sizes_.n, panel, static_cast<float*>(operands.c), operands.c_stride);
      GemmTile& tile = product.tile;
      tile.depth = depth.count;
      tile.continues = !depth.begins_part;
      if (operands.terms.bias != nullptr && depth.begins_part) {
        std::copy_n(static_cast<const float*>(operands.terms.bias) + j, tile.columns, start);
        tile.start = start;
      }
      product.pieces = pieces;
      RunRowsInPlace(operands.b, j, depth.begin, panel, product);
    }
  }
  if (operands.terms.addend == nullptr) return;
  AddRows(DType::kF32, operands.terms.addend, sizes_.m, sizes_.n, operands.c_stride, operands.c);
}

void Gemm::RunColumns(const Operands& operands, float* workspace) const {
  const GemmScope scope(*method_);
  const int64_t element_bytes = SizeOf(sizes_.dtype);
  float* const start = workspace;
  float* const sums = start + kColumnsInPlace;
  float* const packed_a = sums + sums_size();
  ColumnsProduct product;
  product.a = packed_a;
  product.rows = sizes_.m;
  for (const Depth& depth : depths_) {
    method_->pack_few_rows(BlockOfA(operands.a, 0, depth.begin, depth.count), packed_a);
    product.continues = !depth.begins_part;
    product.start = nullptr;
    for (int64_t column = 0; column < sizes_.n; column += kColumnsInPlace) {
      product.b = BlockOfB(operands.b, column, depth.begin, depth.count);
      const int64_t columns = product.b.count;
      if (operands.terms.bias != nullptr && depth.begins_part) {
        ConvertFloats(sizes_.dtype,
                      static_cast<const char*>(operands.terms.bias) + column * element_bytes,
                      DType::kF32, start, columns);
        product.start = start;
      }
      char* const c = static_cast<char*>(operands.c) + column * element_bytes;
      product.c = is_f32() ? reinterpret_cast<float*>(c) : sums;
      product.c_stride = is_f32() ? operands.c_stride : sum_stride();
      method_->multiply_columns(product);
      if (is_f32()) continue;
      method_->round({sums, product.c_stride, sizes_.m, columns, c, operands.c_stride,
                      /*streams=*/false});
    }
  }
  if (operands.terms.addend == nullptr) return;
  AddRows(sizes_.dtype, operands.terms.addend, sizes_.m, sizes_.n, operands.c_stride, operands.c);
}

void Gemm::RunRowsInPlace(const GemmOperand& b, int64_t column, int64_t k, float* panel,
                          PanelProduct& product) const {
  GemmTile& tile = product.tile;
  const float* const rows = static_cast<const float*>(b.data) + k * b.stride;
  if (tile.columns < product.width) {  // these rows are too short to be read in place
    PackPanels(rows + column, b.stride, tile.depth, tile.columns, panel);
  } else {
    tile.b = rows + column;
    tile.b_stride = b.stride;
    if (!reads_long_rows()) {
      tile.next_b = rows + tile.depth * (b.stride + column);
      tile.next_b_lines = CeilDiv(product.width * tile.depth, kLineFloats * sizes_.m);
    }
  }
  MultiplyPanel<ComputeTile>(product);
}

}  // namespace zg
