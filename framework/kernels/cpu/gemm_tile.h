// The micro-kernel of matrix products on the CPU: one tile of C from pieces of A and B.
//
// Every element of C is one chain of fused multiply-adds over ascending k, in every tile size and
// instruction set that has them. So its bits depend only on its row of A and column of B, not on
// the sizes of the product or the element's position.
#pragma once

#include <cstdint>

namespace zg {

inline constexpr int64_t kTileRows = 8;  // at most
// A tile is 16, 32 or 48 columns wide.
inline constexpr int64_t kPanelUnit = 16;
inline constexpr int64_t kMaxPanelWidth = 48;
inline constexpr int64_t kLineFloats = 16;  // in a cache line

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
  // c, a whole tile whose rows are whole cache lines, is written past the caches.
  bool streams = false;
  // Prefetched meanwhile, a little at a time, if not null: the next tile of C, and for each row of
  // this tile `next_b_lines` cache lines of B.
  const float* next_c = nullptr;
  const float* next_b = nullptr;
  int64_t next_b_lines = 0;
};

// Computes a tile of `rows` rows, 1 <= rows <= kTileRows, and `width` columns.
void ComputeTile(const GemmTile& tile, int64_t rows, int64_t width);

}  // namespace zg
