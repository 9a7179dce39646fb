// The exponentials of a softmax over rows. Short rows are processed several at once, as one long
// row, so that they fill whole vectors; no bit depends on how many.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/kernels/cpu/lanes.h"
#include "framework/kernels/cpu/multiversion.h"
#include "framework/kernels/cpu/turned_rows.h"
#include "framework/kernels/math/vector_math.h"

namespace zg {

inline constexpr int64_t kMostRowsAtOnce = 512;
inline constexpr int64_t kMostElementsAtOnce = kMostTurned * kTurnedRows;  // of several rows

// How many rows to process at once: one that is long enough by itself.
inline int64_t RowsAtOnce(int64_t columns) {
  constexpr int64_t kLong = 64;
  constexpr int64_t kElements = 1024;
  if (columns >= kLong) return 1;
  const int64_t rows = std::min(kMostRowsAtOnce, kElements / std::max<int64_t>(1, columns));
  return columns <= kMostTurned ? std::max(kTurnedRows, rows / kTurnedRows * kTurnedRows) : rows;
}

// Elements of the memory that LogSumExpRows needs.
inline int64_t LogSumExpTerms(int64_t columns) {
  return columns * (columns <= kMostTurned ? kFewRows : RowsAtOnce(columns));
}

// y[r][i] = exp(x[r][i] - shifts[r]). y may be x.
template <typename Exponential>
ZG_INLINE void ExpBelow(const float* x, int64_t rows, int64_t columns, const float* shifts,
                        const Exponential& exp, float* y) {
  if (rows == 1) {
    const float shift = shifts[0];
    ZG_INDEPENDENT
    for (int64_t i = 0; i < columns; ++i) y[i] = exp(x[i] - shift);
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    const float shift = shifts[r];
    ZG_INDEPENDENT
    for (int64_t i = r * columns; i < (r + 1) * columns; ++i) y[i] = x[i] - shift;
  }
  ZG_INDEPENDENT
  for (int64_t i = 0; i < rows * columns; ++i) y[i] = exp(y[i]);
}

ZG_INLINE void MaximaOf(const float* x, int64_t rows, int64_t columns, float* maxima) {
  for (int64_t r = 0; r < rows; ++r) maxima[r] = MaximumOf(x + r * columns, columns);
}

ZG_INLINE float SumOfRow(const float* row, int64_t count) {
  return SumTerms(
      count, [=](const auto& load) __attribute__((always_inline)) { return load(row, 0.0f); });
}

struct ExpTimes {
  ZG_INLINE float operator()(float x) const { return Exp(x) * scale; }
  float scale;
};

// The maxima of turned rows, the exponentials of their elements below these, and the sums of those. y may
// be x.
template <typename Exponential>
ZG_INLINE void ExponentialsOfTurned(const TurnedRows& x, int64_t columns, const Exponential& exp,
                                    float* maxima, TurnedRows* y, float* sums) {
  MaximaOfTurned(x, columns, maxima);
  SetTurned(
      columns,
      [&](int64_t i, int64_t r)
          __attribute__((always_inline)) { return exp(x.element(i)[r] - maxima[r]); },
      y);
  SumsOfTurned(*y, columns, sums);
}

ZG_INLINE void LogSumExpOfTurned(const float* x, int64_t rows, int64_t columns, float* results) {
  ForTurned(
      rows, [=](int64_t begin, int64_t count) __attribute__((always_inline)) {
        TurnedRows turned;
        float maxima[kTurnedRows], sums[kTurnedRows];
        Turn(x + begin * columns, count, columns, &turned);
        ExponentialsOfTurned(turned, columns, ExpTimes{1.0f}, maxima, &turned, sums);
        ZG_INDEPENDENT
        for (int64_t r = 0; r < kTurnedRows; ++r) sums[r] = maxima[r] + Log(sums[r]);
        std::copy_n(sums, count, results + begin);
      });
}

// ln(sum of e^x) of RowsAtOnce() rows or fewer, stabilised by their maxima; `terms`: LogSumExpTerms().
inline void LogSumExpRows(const float* x, int64_t rows, int64_t columns, float* terms,
                          float* results) {
  Multiversion([=]() ZG_VERSION {
    if (AreTurned(rows, columns)) return LogSumExpOfTurned(x, rows, columns, results);
    MaximaOf(x, rows, columns, results);
    ExpBelow(x, rows, columns, results, ExpTimes{1.0f}, terms);
    for (int64_t r = 0; r < rows; ++r) results[r] += Log(SumOfRow(terms + r * columns, columns));
  });
}

// (softmax(x) - onehot(target)) * scale for RowsAtOnce() rows or fewer; a target is -1 if it is in
// another part. `out` may be `x`.
inline void SoftmaxMinusOneHot(const float* x, int64_t rows, int64_t columns,
                               const float* log_sum_exp, const int64_t* targets, float scale,
                               float* out) {
  Multiversion([=]() ZG_VERSION {
    float at_targets[kMostRowsAtOnce];
    for (int64_t r = 0; r < rows; ++r) {
      at_targets[r] = targets[r] < 0 ? 0.0f : x[r * columns + targets[r]] - log_sum_exp[r];
    }
    ZG_INDEPENDENT
    for (int64_t r = 0; r < rows; ++r) at_targets[r] = (Exp(at_targets[r]) - 1.0f) * scale;
    ExpBelow(x, rows, columns, log_sum_exp, ExpTimes{scale}, out);
    for (int64_t r = 0; r < rows; ++r) {
      if (targets[r] >= 0) out[r * columns + targets[r]] = at_targets[r];
    }
  });
}

}  // namespace zg
