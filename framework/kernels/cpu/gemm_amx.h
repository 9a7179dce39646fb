// Matrix products of bf16 on processors with tile registers (AMX_TILE and AMX_BF16): an instruction
// adds the product of 16 rows of A and 16 columns of B, over 32 k, to a tile of 16 x 16 sums.
//
// Every element of C is one chain over tiles of 32 k, counted from the start of its row, with the
// last tile padded with zeros. Products of even and of odd k are summed separately, from zero, and
// their sum is added to the element; denormal numbers count as 0. So the bits depend only on the
// element's row, column and bias, but differ from those of a processor without AMX.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "framework/kernels/cpu/gemm_method.h"

namespace zg {

// Whether this processor has tiles for bf16 (and the instructions that round their sums), the
// system lets this process use them, and kernels may (MayUse).
bool HasAmxProducts();

// Only if HasAmxProducts().
const GemmMethod& AmxMethod();

// The operand of the instruction that configures the size of every tile.
struct alignas(64) AmxConfig {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t row_bytes[16];  // of tiles 0 to 7; then zeros
  uint8_t rows[16];        // likewise
};
static_assert(sizeof(AmxConfig) == 64);

inline constexpr AmxConfig kWholeAmxTiles = {
    1, 0, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

inline constexpr int64_t kAmxSide = 16;  // rows of a tile, and columns of 32 bits
inline constexpr int64_t kAmxRowBytes = 64;
inline constexpr int64_t kAmxDepth = 2 * kAmxSide;          // k in a tile of A or B, in pairs
inline constexpr int64_t kAmxFloats = kAmxSide * kAmxSide;  // floats in the space of a tile
inline constexpr int64_t kAmxBlock = 2 * kAmxSide;  // rows and columns of the sums in four tiles

// Strips of 16 rows of A or columns of B, each stored tile after tile over ascending k. There are
// as many as whole blocks need, padded with zeros. A row of a tile is a row of A with its pairs of
// consecutive k, or such a pair of k of B in all columns.
void PackAmxA(const StoredBlock& block, float* strips);
void PackAmxB(const StoredBlock& block, float* strips);

// Floats from one strip to the next.
constexpr int64_t AmxStripSize(int64_t depth) { return CeilDiv(depth, kAmxDepth) * kAmxFloats; }

// `Tiles` are the eight tile registers of this thread, usable after Tiles::Begin(config) and until
// Tiles::End(); their numbers are template arguments, because they are part of the instructions.
template <typename Tiles>
void MultiplyAmxBlocks(const BlockProduct& product) {
  Tiles tiles;
  const int64_t strip = AmxStripSize(product.depth);
  const int64_t c_row_bytes = product.c_stride * int64_t{sizeof(float)};
  for (int64_t j = 0; j < product.columns; j += kAmxBlock) {  // its columns of B stay in the cache
    for (int64_t i = 0; i < product.rows; i += kAmxBlock) {
      float* const c = product.c + i * product.c_stride + j;
      float* const lower_c = c + kAmxSide * product.c_stride;
      if (product.start != nullptr) {
        // The same row sixteen times.
        tiles.template Load<0>(product.start + j, 0);
        tiles.template Load<1>(product.start + j + kAmxSide, 0);
        tiles.template Load<2>(product.start + j, 0);
        tiles.template Load<3>(product.start + j + kAmxSide, 0);
      } else if (product.continues) {
        tiles.template Load<0>(c, c_row_bytes);
        tiles.template Load<1>(c + kAmxSide, c_row_bytes);
        tiles.template Load<2>(lower_c, c_row_bytes);
        tiles.template Load<3>(lower_c + kAmxSide, c_row_bytes);
      } else {
        tiles.template Zero<0>();
        tiles.template Zero<1>();
        tiles.template Zero<2>();
        tiles.template Zero<3>();
      }
      const float* a = product.a + i / kAmxSide * strip;
      const float* b = product.b + j / kAmxSide * strip;
      for (const float* const end = a + strip; a < end; a += kAmxFloats, b += kAmxFloats) {
        tiles.template Load<4>(a, kAmxRowBytes);
        tiles.template Load<6>(b, kAmxRowBytes);
        tiles.template AddProduct<0, 4, 6>();
        tiles.template Load<7>(b + strip, kAmxRowBytes);
        tiles.template AddProduct<1, 4, 7>();
        tiles.template Load<5>(a + strip, kAmxRowBytes);
        tiles.template AddProduct<2, 5, 6>();
        tiles.template AddProduct<3, 5, 7>();
      }
      tiles.template Store<0>(c, c_row_bytes);
      tiles.template Store<1>(c + kAmxSide, c_row_bytes);
      tiles.template Store<2>(lower_c, c_row_bytes);
      tiles.template Store<3>(lower_c + kAmxSide, c_row_bytes);
    }
  }
}

// Rows of tiles 0 to 3 are columns of C, of which there may be fewer than in a whole tile.
inline AmxConfig ConfigOfColumns(int64_t columns) {
  AmxConfig config = kWholeAmxTiles;
  for (const int tile : {0, 1, 2, 3, 6, 7}) config.rows[tile] = static_cast<uint8_t>(columns);
  return config;
}

// sums[column][row], 16 x 16, to (row, column).
void TransposeAmxSums(const float* sums, float* target, int64_t stride);

// Calls f with the constants 0 to kCount - 1.
template <int kCount, typename F>
void ForEachTile(const F& f) {
  if constexpr (kCount > 0) {
    ForEachTile<kCount - 1>(f);
    f(std::integral_constant<int, kCount - 1>());
  }
}

// Multiplies kOfA strips of A, packed like columns, with kOfB strips of 16 columns of B from
// `column` on. A column is a row of a tile as it is stored, so C is computed transposed. An element
// has the bits of MultiplyAmxBlocks: products of two numbers do not depend on their order.
template <int kOfA, int kOfB, typename Tiles>
void MultiplyAmxColumns(const ColumnsProduct& product, int64_t column) {
  static_assert(kOfA * kOfB <= 4);
  constexpr int64_t kAhead = 4;  // tiles that are prefetched
  Tiles tiles;
  alignas(64) float sums[kAmxFloats] = {};
  const int64_t columns = std::min(kAmxSide, product.b.count - column);
  const int64_t stride_bytes = product.b.stride * 2;
  const int64_t strip = AmxStripSize(product.b.depth);
  const char* const b = static_cast<const char*>(product.b.data) + column * stride_bytes;
  const int64_t row_bytes = product.b.depth * 2;
  ForEachTile<kOfB>([&](auto of_b) {
    if (product.start != nullptr) {
      for (int64_t i = 0; i < columns; ++i) {
        std::fill_n(sums + i * kAmxSide, kAmxSide, product.start[column + of_b * kAmxSide + i]);
      }
    }
    ForEachTile<kOfA>(
        [&](auto of_a) { tiles.template Load<of_b * kOfA + of_a>(sums, kAmxRowBytes); });
  });
  const float* a = product.a;
  for (int64_t k = 0; k < row_bytes; k += kAmxRowBytes, a += kAmxFloats) {
    const int64_t ahead = k + kAhead * kAmxRowBytes;
    // Behind the last tile come the next columns.
    const char* const next =
        b + (ahead < row_bytes ? ahead : kOfB * kAmxSide * stride_bytes + ahead - row_bytes);
    ForEachTile<(kOfA + 1) / 2>([&](auto pair) {
      constexpr int kFirst = 2 * pair;
      constexpr bool kIsPair = kFirst + 1 < kOfA;
      tiles.template Load<4>(a + kFirst * strip, kAmxRowBytes);
      if constexpr (kIsPair) tiles.template Load<5>(a + (kFirst + 1) * strip, kAmxRowBytes);
      ForEachTile<kOfB>([&](auto of_b) {
        constexpr int kB = 6 + of_b % 2;
        if constexpr (kFirst == 0) {
          const int64_t offset = of_b * kAmxSide * stride_bytes;
          tiles.template Load<kB>(reinterpret_cast<const float*>(b + offset + k), stride_bytes);
          for (int64_t i = 0; i < columns; ++i) {
            __builtin_prefetch(next + offset + i * stride_bytes);
          }
        }
        tiles.template AddProduct<of_b * kOfA + kFirst, kB, 4>();
        if constexpr (kIsPair) tiles.template AddProduct<of_b * kOfA + kFirst + 1, kB, 5>();
      });
    });
  }
  ForEachTile<kOfB>([&](auto of_b) {
    ForEachTile<kOfA>([&](auto of_a) {
      tiles.template Store<of_b * kOfA + of_a>(sums, kAmxRowBytes);
      TransposeAmxSums(sums,
                       product.c + of_a * kAmxSide * product.c_stride + column + of_b * kAmxSide,
                       product.c_stride);
    });
  });
}

template <int kOfA, int kOfB, typename Tiles>
void MultiplyAmxColumnsOf(const ColumnsProduct& product) {
  int64_t column = 0;
  for (; column + kOfB * kAmxSide <= product.b.count; column += kOfB * kAmxSide) {
    MultiplyAmxColumns<kOfA, kOfB, Tiles>(product, column);
  }
  for (; column + kAmxSide <= product.b.count; column += kAmxSide) {
    MultiplyAmxColumns<kOfA, 1, Tiles>(product, column);
  }
  if (column == product.b.count) return;
  Tiles::Begin(ConfigOfColumns(product.b.count - column));
  MultiplyAmxColumns<kOfA, 1, Tiles>(product, column);
  Tiles::Begin(kWholeAmxTiles);
}

template <typename Tiles>
void MultiplyAmxColumnsOfFewRows(const ColumnsProduct& product) {
  if (product.rows <= kAmxSide) return MultiplyAmxColumnsOf<1, 4, Tiles>(product);
  if (product.rows <= 2 * kAmxSide) return MultiplyAmxColumnsOf<2, 2, Tiles>(product);
  MultiplyAmxColumnsOf<4, 1, Tiles>(product);
}

// `round` gets sums without denormal numbers, because they come from tiles.
template <typename Tiles>
constexpr GemmMethod MakeAmxMethod(void (*round)(const SumsToRound& sums)) {
  GemmMethod method = {};
  method.row_unit = kAmxBlock;
  method.column_unit = kAmxBlock;
  method.depth_unit = kAmxDepth;
  method.packed_k = 2;
  // A few rows of A are multiplied with a block of B that fills most of a second-level cache of 2
  // MB, which every processor with tiles has; sums stay in the tiles over all k up to 2048.
  method.max_rows = 2 * kAmxBlock;
  method.max_columns = 4096;
  method.max_depth = 2048;
  method.max_b_size = 384 * 1024;
  method.sum_columns = 12 * kAmxBlock;
  method.pack_a = PackAmxA;
  method.pack_b = PackAmxB;
  method.multiply = MultiplyAmxBlocks<Tiles>;
  method.round = round;
  method.pack_few_rows = PackAmxB;
  method.multiply_columns = MultiplyAmxColumnsOfFewRows<Tiles>;
  method.begin = [] { Tiles::Begin(kWholeAmxTiles); };
  method.end = Tiles::End;
  return method;
}

}  // namespace zg
