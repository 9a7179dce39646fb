// A method of multiplying blocks of matrices, one per kind of arithmetic: floats (gemm_panels.h),
// pairs of bf16 (gemm_pairs.h), tiles of bf16 (gemm_amx.h). Gemm cuts the matrices into blocks; the
// method packs each block into scratch, in its own layout, and multiplies packed blocks.
#pragma once

#include <cstdint>

#include "framework/kernels/cpu/convert.h"
#include "framework/kernels/cpu/gemm_tile.h"
#include "framework/tensor/dtype.h"

namespace zg {

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t RoundUp(int64_t value, int64_t unit) { return CeilDiv(value, unit) * unit; }

// So many floats, and those that fill their last cache line.
constexpr int64_t AlignedFloats(int64_t count) { return RoundUp(count, kLineFloats); }

// A block of A or B in the stored matrix: `count` rows of A or columns of B, of `depth` k each.
struct StoredBlock {
  const void* data = nullptr;
  int64_t stride = 0;         // elements between rows of the matrix as stored
  bool runs_along_k = false;  // whether a stored row runs along k; otherwise it runs across the
                              // rows of A or columns of B
  int64_t count = 0;
  int64_t depth = 0;
};

// A product of packed blocks, or one of several parts of it along k.
struct BlockProduct {
  const float* a = nullptr;
  const float* b = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  // For operands in 16 bits, C is padded to whole units, all of which may be written (GemmMethod).
  float* c = nullptr;
  int64_t c_stride = 0;
  const float* start = nullptr;  // one start value of the sums per column, padded to whole units,
                                 // or
  bool continues = false;        // sums start at c's values; if neither is set, at zero
  const SumOfPart* part = nullptr;  // null: the sum is not in parts
  int64_t row = 0;                  // of the product in the blocks of `part`
  int64_t column = 0;
  bool streams = false;  // c is written past the caches, if operands are in f32
};

// Sums of a product in 16 bits, and their destination.
struct SumsToRound {
  const float* sums;
  int64_t sum_stride;
  int64_t rows;
  int64_t columns;
  void* c;
  int64_t c_stride;  // elements, like sum_stride
  // C's rows are whole cache lines, and are better written past the caches.
  bool streams;
};

// A product of few rows, with columns of B that are not packed: they lie along k where they are
// stored.
struct ColumnsProduct {
  const float* a = nullptr;  // packed by pack_few_rows
  int64_t rows = 0;
  StoredBlock b;
  float* c = nullptr;  // with the start and padding of a BlockProduct
  int64_t c_stride = 0;
  const float* start = nullptr;
  bool continues = false;  // only if operands are in f32

  // Its columns from `column` on; B is of T.
  template <typename T>
  ColumnsProduct From(int64_t column) const {
    ColumnsProduct rest = *this;
    rest.b.data = static_cast<const T*>(b.data) + column * b.stride;
    rest.b.count -= column;
    rest.c += column;
    if (start != nullptr) rest.start += column;
    return rest;
  }
};

// Rounds to `kDType` like ConvertFloats.
template <DType kDType>
void RoundSums(const SumsToRound& sums) {
  RoundRows(sums.sums, sums.sum_stride, sums.rows, sums.columns, kDType, sums.c, sums.c_stride);
}

inline constexpr int64_t kFewRows = 64;

struct GemmMethod {
  // Packed blocks are padded to whole units, although the last ones may have fewer rows, columns or
  // k.
  int64_t row_unit;
  int64_t column_unit;
  int64_t depth_unit;
  int64_t packed_k;  // number of k of a row or column that take the space of a float
  // The block sizes of Gemm, in whole units: with less depth a block of B has more columns, up to
  // max_columns.
  int64_t max_rows;
  int64_t max_columns;
  int64_t max_depth;
  int64_t max_b_size;   // floats
  int64_t sum_columns;  // columns of a product whose sums should stay in the cache until they are
                        // rounded
  void (*pack_a)(const StoredBlock& block, float* packed);  // aligned to 64 bytes
  void (*pack_b)(const StoredBlock& block, float* packed);
  void (*multiply)(const BlockProduct& product);
  void (*round)(const SumsToRound& sums);  // for operands in 16 bits
  // For up to kFewRows rows, and whole units of k. A row takes the space of a packed one.
  void (*pack_few_rows)(const StoredBlock& block, float* packed);
  void (*multiply_columns)(const ColumnsProduct& product);
  // Called before and after the products of a thread (GemmScope); null if not needed.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;

  // Floats in a packed block.
  int64_t PackedASize(int64_t rows, int64_t depth) const {
    return RoundUp(rows, row_unit) * RoundUp(depth, depth_unit) / packed_k;
  }
  int64_t PackedBSize(int64_t columns, int64_t depth) const {
    return RoundUp(columns, column_unit) * RoundUp(depth, depth_unit) / packed_k;
  }
};

// While a GemmScope exists, its thread may call the method's `multiply`.
class GemmScope {
 public:
  explicit GemmScope(const GemmMethod& method) : method_(method) {
    if (method_.begin != nullptr) method_.begin();
  }
  ~GemmScope() {
    if (method_.end != nullptr) method_.end();
  }
  GemmScope(const GemmScope&) = delete;
  GemmScope& operator=(const GemmScope&) = delete;

 private:
  const GemmMethod& method_;
};

}  // namespace zg
