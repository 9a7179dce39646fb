// The micro-kernel of matrix products on the CPU: one tile of C from pieces of A and B.
//
// Every element of C is one chain of fused multiply-adds over ascending k, in every tile size and
// instruction set that has them. So its bits depend only on its row of A and column of B, not on
// the sizes of the product or the element's position. In a sum in parts (gemm.h) each part is such a
// chain.
#pragma once

#include <cstdint>

namespace zg {

// Sums of a block of C, element (i, j) at data[i * stride + j].
struct BlockSums {
  float* data = nullptr;
  int64_t stride = 0;

  float* At(int64_t row, int64_t column) const { return data + row * stride + column; }
};

// What a part of a sum (gemm.h) continues, if a tile does, and the sums that are added to it at its
// end, the last part first.
struct SumOfPart {
  BlockSums begun;
  const BlockSums* earlier = nullptr;
  int num_earlier = 0;
};

inline constexpr int64_t kTileRows = 8;  // at most
// A tile is 16, 32 or 48 columns wide.
inline constexpr int64_t kPanelUnit = 16;
inline constexpr int64_t kMaxPanelWidth = 48;
inline constexpr int64_t kLineFloats = 16;  // in a cache line

// Parts of columns that B is stored by, to be prefetched: for each row of a tile the first `depth`
// elements of the next `count` columns.
struct NextColumns {
  const float* begin = nullptr;  // null: none
  int64_t stride = 0;
  int64_t depth = 0;
  int64_t count = 0;

  void Advance(int64_t rows) { begin += rows * count * stride; }
};

struct GemmTile {
  const float* a = nullptr;  // element (i, k) at k * a_stride + i
  int64_t a_stride = 0;
  const float* b = nullptr;  // element (k, j) at k * b_stride + j, for all columns of the tile
  int64_t b_stride = 0;
  float* c = nullptr;
  int64_t c_stride = 0;
  int64_t depth = 0;             // number of k
  int64_t columns = 0;           // number of columns of c to write, at most the tile's width
  const float* start = nullptr;  // one value per column of the tile at which the chains start, or
  bool continues = false;        // chains start at c's values; if neither is set, at zero
  const SumOfPart* part = nullptr;  // null: the sum is not in parts
  int64_t row = 0;                  // of the tile in the blocks of `part`
  int64_t column = 0;
  // c, a whole tile whose rows are whole cache lines, is written past the caches.
  bool streams = false;
  // Prefetched meanwhile, a little at a time, if not null: the next tile of C, and for each row of
  // this tile `next_b_lines` cache lines of B, or columns of it.
  const float* next_c = nullptr;
  const float* next_b = nullptr;
  int64_t next_b_lines = 0;
  NextColumns next_columns;
};

// Computes a tile of `rows` rows, 1 <= rows <= kTileRows, and `width` columns.
void ComputeTile(const GemmTile& tile, int64_t rows, int64_t width);

}  // namespace zg
