// Rows that lose multiples of other rows, as in an elimination. Several multiples are subtracted at once,
// so that an element is read and written once for all of them; it loses them one after the other, in
// the order of their rows, with single operations, so blocks change no bits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/multiversion.h"

namespace zg {

inline constexpr int64_t kRowsAtOnce = 8;  // of multiples that are subtracted

// Element (r, p), of row r and a multiple p, is data[r row + p column].
struct RowFactors {
  const float* data;
  int64_t row;
  int64_t column;

  ZG_INLINE float At(int64_t r, int64_t p) const { return data[r * row + p * column]; }
  ZG_INLINE RowFactors From(int64_t r, int64_t p) const {
    return {data + r * row + p * column, row, column};
  }
};

struct Rows {
  float* data;
  int64_t stride;

  ZG_INLINE float* Row(int64_t r) const { return data + r * stride; }
  ZG_INLINE Rows From(int64_t r) const { return {Row(r), stride}; }
};

template <int kTo, int kFrom>
ZG_INLINE void SubtractBlock(const Rows& from, const RowFactors& factors, int64_t count,
                             const Rows& to) {
  float own[kTo][kFrom];
  for (int r = 0; r < kTo; ++r) {
    for (int p = 0; p < kFrom; ++p) own[r][p] = factors.At(r, p);
  }
  ZG_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    float rest[kTo];
#pragma GCC unroll 4
    for (int r = 0; r < kTo; ++r) rest[r] = to.Row(r)[i];
#pragma GCC unroll 8
    for (int p = 0; p < kFrom; ++p) {
      const float x = from.Row(p)[i];
#pragma GCC unroll 4
      for (int r = 0; r < kTo; ++r) rest[r] -= own[r][p] * x;
    }
#pragma GCC unroll 4
    for (int r = 0; r < kTo; ++r) to.Row(r)[i] = rest[r];
  }
}

template <int kTo>
ZG_INLINE void SubtractFromRows(const Rows& from, int64_t num_from, const RowFactors& factors,
                                int64_t count, const Rows& to) {
  int64_t p = 0;
  for (; p + kRowsAtOnce <= num_from; p += kRowsAtOnce) {
    SubtractBlock<kTo, kRowsAtOnce>(from.From(p), factors.From(0, p), count, to);
  }
  for (; p < num_from; ++p) {
    SubtractBlock<kTo, 1>(from.From(p), factors.From(0, p), count, to);
  }
}

// to[r] -= sum of factors[r, p] from[p], for the first `count` elements of `num_to` rows, which are none
// of `from`.
ZG_INLINE void SubtractProducts(const Rows& from, int64_t num_from, const RowFactors& factors,
                                int64_t count, const Rows& to, int64_t num_to) {
  constexpr int kToAtOnce = 4;
  int64_t r = 0;
  for (; r + kToAtOnce <= num_to; r += kToAtOnce) {
    SubtractFromRows<kToAtOnce>(from, num_from, factors.From(r, 0), count, to.From(r));
  }
  for (; r < num_to; ++r) {
    SubtractFromRows<1>(from, num_from, factors.From(r, 0), count, to.From(r));
  }
}

}  // namespace zg
