#include "framework/kernels/cpu/square_terms.h"

#include <algorithm>
#include <cstring>

#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/prefetch.h"

namespace zg {
namespace {

constexpr int64_t kTileTerms = 8;
constexpr int64_t kTileElements = kTileTerms * kSquareSumTermElements;

constexpr int64_t kTilesAtOnce = 4;
// While terms are added nothing is read: the processor would not read far enough ahead.
constexpr int64_t kElementsAhead = 2 * kTilesAtOnce * kTileElements;

using Floats = float __attribute__((vector_size(32)));
using Doubles = double __attribute__((vector_size(64)));

ZG_INLINE Doubles LoadAsDoubles(const float* data) {
  Floats floats;
  std::memcpy(&floats, data, sizeof(floats));
  return __builtin_convertvector(floats, Doubles);
}

// Lane by lane of the two operands: {a0 + a1, b0 + b1, a2 + a3, b2 + b3, ...}, and likewise for
// pairs and quadruples of lanes.
ZG_INLINE Doubles AddNeighbours(Doubles a, Doubles b) {
  return __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14) +
         __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
}
ZG_INLINE Doubles AddPairs(Doubles a, Doubles b) {
  return __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13) +
         __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
}
ZG_INLINE Doubles AddHalves(Doubles a, Doubles b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
         __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
}

// The sum of squares of each term of the tiles at g; those at `next` are prefetched. Squares are
// exact in f64; with s[i] = g[i]^2 + g[i + 8]^2 the sum is
// ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7)).
void TileSums(const float* g, const float* next, int64_t num_tiles, double* sums) {
  Multiversion([=]() ZG_VERSION {
    for (int64_t tile = 0; tile < num_tiles; ++tile) {
      Doubles s[kTileTerms];
      for (int64_t term = 0; term < kTileTerms; ++term) {
        const Doubles low = LoadAsDoubles(g + term * kSquareSumTermElements);
        const Doubles high = LoadAsDoubles(g + term * kSquareSumTermElements + 8);
        s[term] = low * low + high * high;
      }
      const Doubles first = AddPairs(AddNeighbours(s[0], s[1]), AddNeighbours(s[2], s[3]));
      const Doubles second = AddPairs(AddNeighbours(s[4], s[5]), AddNeighbours(s[6], s[7]));
      const Doubles all = AddHalves(first, second);
      std::memcpy(sums, &all, sizeof(all));
      PrefetchRow<0>(next, kTileElements);
      g += kTileElements;
      next += kTileElements;
      sums += kTileTerms;
    }
  });
}

}  // namespace

void SquareTerms::Add(const float* x, int64_t count) {
  const auto add = [this](const float* tiles, const float* next, int64_t num_tiles) {
    double sums[kTilesAtOnce * kTileTerms];
    TileSums(tiles, next, num_tiles, sums);
    for (int64_t i = 0; i < num_tiles * kTileTerms; i += 2) {
      even_.Add(sums[i]);
      odd_.Add(sums[i + 1]);
    }
  };
  const int64_t num_whole_tiles = count / kTileElements;
  for (int64_t tile = 0; tile < num_whole_tiles; tile += kTilesAtOnce) {
    const float* const tiles = x + tile * kTileElements;
    add(tiles, tiles + kElementsAhead, std::min(num_whole_tiles - tile, kTilesAtOnce));
  }
  if (const int64_t left = count % kTileElements; left > 0) {
    float tile[kTileElements] = {};
    std::copy_n(x + num_whole_tiles * kTileElements, left, tile);
    add(tile, tile, 1);
  }
}

void SquareTerms::AddTo(int64_t* words) const {
  even_.AddTo(words);
  odd_.AddTo(words);
}

}  // namespace zg
