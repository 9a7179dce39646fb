// A way of multiplying blocks of matrices, one per kind of arithmetic: floats (gemm_panels.h),
// pairs of bf16 (gemm_pairs.h), tiles of bf16 (gemm_amx.h). Gemm cuts the matrices into blocks; the
// method packs each into scratch, in a layout of its own, and multiplies what is packed.
#pragma once

#include <cstdint>

namespace zg {

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t RoundUp(int64_t value, int64_t unit) { return CeilDiv(value, unit) * unit; }

// A block of A or B where it is stored: `count` rows of A or columns of B, of `depth` k each.
struct StoredBlock {
  const void* data = nullptr;
  int64_t stride = 0;         // elements between rows of the matrix as stored
  bool runs_along_k = false;  // such a row; else it runs across the rows of A or columns of B
  int64_t count = 0;
  int64_t depth = 0;
};

// A product of packed blocks, or a part of one that continues over several k.
struct BlockProduct {
  const float* a = nullptr;
  const float* b = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  // For operands in 16 bits, of whole units, all of which may be written (GemmMethod).
  float* c = nullptr;
  int64_t c_stride = 0;
  const float* start = nullptr;  // a value per column, of whole units, where the sums start, or
  bool continues = false;        // they start at c's values; else at zero
  bool streams = false;          // c is written past the caches, if operands are in f32
};

struct GemmMethod {
  // Packed blocks are of whole units, though the rows, columns or k in the last may be fewer.
  int64_t row_unit;
  int64_t column_unit;
  int64_t depth_unit;
  int64_t max_depth;  // of a block, a multiple of the unit
  int64_t packed_k;   // how many k of a row or column take the place of a float
  void (*pack_a)(const StoredBlock& block, float* packed);  // aligned to 64 bytes
  void (*pack_b)(const StoredBlock& block, float* packed);
  void (*multiply)(const BlockProduct& product);

  // Floats that a packed block takes.
  int64_t PackedASize(int64_t rows, int64_t depth) const {
    return RoundUp(rows, row_unit) * RoundUp(depth, depth_unit) / packed_k;
  }
  int64_t PackedBSize(int64_t columns, int64_t depth) const {
    return RoundUp(columns, column_unit) * RoundUp(depth, depth_unit) / packed_k;
  }
};

}  // namespace zg
