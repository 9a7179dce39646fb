// The inner kernel of matrix products on the CPU: one tile of C from packed pieces of A and B.
//
// Every element of C is one chain of fused multiply-adds over ascending k, in every tile size and
// instruction set that has them, so that its bits depend on its row of A and column of B alone, not
// on the sizes of the product or the element's place in it.
//
// Why not oneDNN: each of its paths allocates while it runs, dnnl_sgemm megabytes of scratch that
// no memory plan would know of; for 20 rows and weights that come from memory it is half as fast;
// and the bits of a row change with the number of rows.
#pragma once

#include <cstdint>

namespace zg {

// B is packed into panels of this many columns: element (k, j) at k * kPanelColumns + j.
inline constexpr int64_t kPanelColumns = 32;
// The largest number of k of one tile; longer products continue the chain from C.
inline constexpr int64_t kMaxDepth = 384;
// Row i of a piece of A with its rows packed starts at i * kPackedRowStride: element (i, k) at
// i * kPackedRowStride + k.
inline constexpr int64_t kPackedRowStride = kMaxDepth + 16;
// A piece of A with its columns packed has element (i, k) at k * kPackedColumnStride + i.
inline constexpr int64_t kPackedColumnStride = 16;

enum class ALayout { kRows, kColumns };

struct GemmTile {
  const float* a = nullptr;
  const float* b = nullptr;  // 64-byte aligned
  float* c = nullptr;
  int64_t c_stride = 0;
  int64_t depth = 0;             // number of k
  int64_t columns = 0;           // of c that are written, at most kPanelColumns
  const float* start = nullptr;  // a row of kPanelColumns values where the chains start, or
  bool continues = false;        // they start at c's values; else at zero
};

using GemmTileFunction = void (*)(const GemmTile& tile);

// The most rows of a tile on this processor; at most kPackedColumnStride.
int64_t MaxTileRows();
// The function for tiles of `rows` rows, 1 <= rows <= MaxTileRows().
GemmTileFunction FindGemmTile(ALayout layout, int64_t rows);

}  // namespace zg
